// Axis rules of ops that move elements.
#include <algorithm>
#include <limits>
#include <optional>

#include "absl/algorithm/container.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/scatter_op.h"

namespace reprise::ops {
namespace {

void Erase(AxisFlowValue& flow, int64_t dim) {
  std::erase_if(flow.along, [&](const Positions& positions) { return positions.dim == dim; });
}

constexpr char kMayCount[] = "picks by data, which may count from the end, among the positions of";

}  // namespace

void TransposeAxis(AxisContext& context) {
  std::vector<int64_t> order = context.attributes().Ints("perm");
  if (order.empty()) {
    for (int64_t d = context.rank(0) - 1; d >= 0; --d) order.push_back(d);
  }
  AxisFlowValue flow;
  for (size_t d = 0; d < order.size(); ++d) {
    if (const Positions* positions = context.input(0).At(order[d])) {
      flow.along.push_back(AlongDim(*positions, static_cast<int64_t>(d)));
    }
  }
  context.Set(0, std::move(flow));
}

// Copies along a dim of 1 may become positions, all of them alike.
void ExpandAxis(AxisContext& context) {
  const int64_t added = context.output_rank() - context.rank(0);
  AxisFlowValue flow;
  const std::optional<double> uniform = context.Uniform(0);
  for (int64_t d = 0; d < context.output_rank(); ++d) {
    const int64_t own = d - added;
    if (const Positions* positions = own >= 0 ? context.input(0).At(own) : nullptr) {
      flow.along.push_back(AlongDim(*positions, d));
    } else if (const std::optional<Extent> extent = context.OutputExtent(d);
               extent.has_value() &&
               context.output_shape()[d] != context.larger_output_shape()[d]) {
      flow.along.push_back({.dim = d,
                            .padding = uniform.has_value() ? PaddingValue(*uniform) : std::nullopt,
                            .extent = *extent});
    }
  }
  context.Set(0, std::move(flow));
}

// Copies of the whole one after another: where a value without positions is repeated once for each
// position, each position gets a copy of its own.
void TileAxis(AxisContext& context) {
  const auto repeats = context.integers(1), larger = context.larger_integers(1);
  if (!repeats || !larger || repeats->size() != larger->size()) return UnknownAxis(context);
  AxisFlowValue flow;
  const std::optional<double> uniform = context.Uniform(0);
  for (int64_t d = 0; d < context.output_rank(); ++d) {
    const bool alike = (*repeats)[d] == (*larger)[d];
    if (const Positions* positions = context.input(0).At(d)) {
      if (!alike) return UnknownAxis(context);
      flow.along.push_back(*positions);
      flow.along.back().repeated |= (*repeats)[d] != 1;
    } else if (!alike) {
      const bool one_each = (*repeats)[d] == context.axis_size() &&
                            (*larger)[d] == context.larger_axis_size() &&
                            context.shape(0)[d] == context.larger_shape(0)[d];
      if (!one_each) return UnknownAxis(context);
      flow.along.push_back(
          {.dim = d,
           .inner = context.shape(0)[d],
           .padding = uniform.has_value() ? PaddingValue(*uniform) : std::nullopt});
    }
  }
  context.Set(0, std::move(flow));
}

void SplitAxis(AxisContext& context) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", 0));
  AxisFlowValue flow = context.input(0);
  for (Positions& positions : flow.along) {
    if (positions.dim != dim) continue;
    context.Doubt("cuts into parts the positions of");
    positions.moved = true;
    positions.parts.clear();
    positions.compact = false;
  }
  for (size_t o = 0; o < context.node().outputs.size(); ++o) context.Set(o, flow);
}

namespace {

// Returns the positions that are left where bound `i` of a Slice takes a known number of them away,
// from the beginning or, counted from there, from the end. nullopt: it does something else.
std::optional<Extent> RestOf(const AxisContext& context, size_t i, const Positions& positions,
                             int64_t step) {
  const bool plain = step == 1 && positions.inner == 1 && !positions.moved && !positions.repeated &&
                     !context.is_batch();
  const auto starts = context.integers(1), ends = context.integers(2);
  const auto larger_starts = context.larger_integers(1), larger_ends = context.larger_integers(2);
  if (!plain || *starts != *larger_starts || *ends != *larger_ends) return std::nullopt;
  const int64_t start = (*starts)[i], end = (*ends)[i];
  const int64_t larger = context.larger_shape(0)[positions.dim];
  const bool to_end = end >= larger && end >= std::numeric_limits<int32_t>::max();
  if (start < 0 || (end >= 0 && !to_end)) return std::nullopt;
  return positions.extent.Through((to_end ? 0 : end) - start, 1).AtMultiplesOf(context.step());
}

// Returns the positions that are left where a Slice ends where those of another value do, which
// lies before the end of every request.
std::optional<Extent> FirstOf(const AxisContext& context, int64_t start,
                              const Positions& positions) {
  const bool plain = positions.inner == 1 && !positions.moved && !positions.repeated &&
                     !context.is_batch() && start >= 0;
  if (!plain) return std::nullopt;
  const std::optional<Extent> first = context.OutputExtent(positions.dim);
  const Extent rest = positions.extent.Through(-start, 1).AtMultiplesOf(context.step());
  const bool has_all =
      first.has_value() && first->stride == rest.stride && first->offset <= rest.offset;
  return has_all ? first : std::nullopt;
}

// Returns how many elements of a line every request has.
int64_t OfEveryRequest(const AxisContext& context, const Positions& positions) {
  if (positions.repeated || positions.moved || context.is_batch()) return 0;
  return positions.inner * positions.extent.At(context.step());
}

}  // namespace

void SliceAxis(AxisContext& context) {
  const auto starts = context.integers(1), ends = context.integers(2);
  const auto larger_starts = context.larger_integers(1), larger_ends = context.larger_integers(2);
  const bool known = starts && ends && larger_starts && larger_ends;
  if (!known) return UnknownAxis(context);
  std::vector<int64_t> dims, steps(starts->size(), 1);
  for (size_t i = 0; i < starts->size(); ++i) dims.push_back(static_cast<int64_t>(i));
  if (context.has_input(3)) {
    if (!context.integers(3)) return UnknownAxis(context);
    dims = *context.integers(3);
  }
  if (context.has_input(4)) {
    if (!context.integers(4)) return UnknownAxis(context);
    steps = *context.integers(4);
  }
  AxisFlowValue flow = context.input(0);
  for (size_t i = 0; i < starts->size(); ++i) {
    const int64_t dim = context.Dim(dims[i]);
    const int64_t size = context.shape(0)[dim], larger = context.larger_shape(0)[dim];
    const auto clamp = [](int64_t at, int64_t n) {
      return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n);
    };
    const int64_t start = clamp((*starts)[i], size), end = clamp((*ends)[i], size);
    const int64_t larger_start = clamp((*larger_starts)[i], larger);
    const int64_t larger_end = clamp((*larger_ends)[i], larger);
    const Positions* positions = context.input(0).At(dim);
    if (positions == nullptr) {
      if (end == larger_end && start == larger_start) continue;
      // A table that is cut at the length: as it begins.
      const std::optional<Extent> extent = steps[i] == 1 ? context.OutputExtent(dim) : std::nullopt;
      const bool grows = extent.has_value() && extent->is_whole();
      if (extent.has_value() && start == larger_start) {
        flow.along.push_back({.dim = dim, .extent = *extent});
      } else if (grows && end == size && larger_end == larger && flow.along.empty()) {
        context.Doubt("takes the last elements of a table, as many as there are positions of");
        flow.along.push_back({.dim = dim});
        flow.shifted = dim;
      } else {
        context.Mix("cuts a table where the length says, by");
      }
      continue;
    }
    Positions& kept =
        *absl::c_find_if(flow.along, [&](const Positions& one) { return one.dim == dim; });
    const bool all = start == 0 && larger_start == 0 && end == size && larger_end == larger;
    if (all && steps[i] == 1) continue;
    const bool said = (*starts)[i] == (*larger_starts)[i] && (*starts)[i] >= 0;
    const bool same_start = said || start == larger_start;
    const std::optional<Extent> rest = RestOf(context, i, *positions, steps[i]);
    if (steps[i] < 0) {
      context.Look("turns round", *positions);
    } else if (rest.has_value() && context.OutputHas(*rest, dim)) {
      // The rest begins as the request's rest does, and ends the same distance before its end.
      if ((*ends)[i] < 0) kept.padding.reset();
      kept.extent = *rest;
      continue;
    } else if (!same_start) {
      context.Mix("takes elements counted from the end of");
    } else if (end == larger_end && end <= OfEveryRequest(context, *positions)) {
      Erase(flow, dim);
      continue;
    } else if (const auto first = said && steps[i] == 1 && end != larger_end
                                      ? FirstOf(context, start, *positions)
                                      : std::nullopt;
               first.has_value()) {
      if (*first != positions->extent) kept.padding.reset();
      kept.extent = *first;
      continue;
    } else {
      context.Doubt("takes some of the positions of");
    }
    kept.moved = true;
    kept.parts.clear();
    kept.compact = false;
  }
  context.Set(0, std::move(flow));
}

void GatherAxis(AxisContext& context) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", 0));
  const int64_t added = context.rank(1) - 1;
  AxisFlowValue flow;
  for (const Positions& positions : context.input(0).along) {
    if (positions.dim == dim) continue;
    flow.along.push_back(AlongDim(positions, positions.dim + (positions.dim > dim ? added : 0)));
  }
  for (const Positions& positions : context.input(1).along) {
    Positions looked_up = AlongDim(positions, positions.dim + dim);
    looked_up.padding.reset();
    // The element of the table at a known index is known where the table is.
    const Tensor* table = context.constant(0);
    if (positions.padding.has_value() && table != nullptr && table->shape().size() == 1) {
      const std::vector<double> values = table->ToDoubles();
      const double index = *positions.padding;
      const double at = index < 0 ? index + static_cast<double>(values.size()) : index;
      if (at >= 0 && at < static_cast<double>(values.size())) {
        looked_up.padding = values[static_cast<size_t>(at)];
      }
    }
    flow.along.push_back(looked_up);
  }
  if (const Positions* picked = context.input(0).At(dim)) {
    const auto indices = context.integers(1), larger = context.larger_integers(1);
    const auto negative = [](int64_t index) { return index < 0; };
    const int64_t of_all = OfEveryRequest(context, *picked);
    const auto not_first = [&](int64_t index) { return index >= of_all; };
    if (!indices && context.TakesFromRequest(1, *picked)) {
      // No place lies in the padding.
    } else if (!indices && context.MayCountFromEnd(1)) {
      context.Mix(kMayCount);
    } else if (!indices || !larger) {
      context.Doubt("picks by data among the positions of");
    } else if (*indices != *larger || absl::c_any_of(*indices, negative)) {
      context.Mix("takes elements counted from the end of");
    } else if (context.is_batch() || absl::c_any_of(*indices, not_first)) {
      context.Doubt("takes some of the positions of");  // A short request has no such position.
    }
  }
  context.Set(0, std::move(flow));
}

// Puts zeros beside a diagonal: elements at a position stay there.
void TriluAxis(AxisContext& context) {
  AxisFlowValue flow = context.input(0);
  for (Positions& positions : flow.along) {
    if (positions.padding != 0) positions.padding.reset();
  }
  if (flow.along.size() == 2 && context.attributes().Int("upper", 1) == 0) {
    // Keys past the end lie past the diagonal for every query that is not. See axis_flow.cc.
    const auto k = context.has_input(1) ? context.integers(1) : std::vector<int64_t>{0};
    const bool last_two = flow.along[0].dim == context.rank(0) - 2;
    if (k && !k->empty() && (*k)[0] == 0 && last_two) {
      flow.along[1].padding = 0;
    }
  }
  if (context.is_batch() && !flow.along.empty())
    context.Doubt("puts zeros where the place says, in");
  context.Set(0, std::move(flow));
}

// Rows that are looked up each in itself: GatherND by batch dims.
bool TakesRowByRow(const AxisContext& context) {
  const int64_t rows = context.attributes().Int("batch_dims", 0);
  if (!context.is_batch() || context.node().op != GatherNdOp::kName || rows == 0) return false;
  const auto& data = context.input(0).along;
  const auto& places = context.input(1).along;
  return absl::c_equal(data, places, [&](const Positions& a, const Positions& b) {
    return a.dim == b.dim && a.dim < rows && a.inner == b.inner && !a.moved && !b.moved &&
           !a.repeated && !b.repeated;
  });
}

// Along the dims that are not looked along, an element comes from where it goes.
void GatherElementsAxis(AxisContext& context) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", 0));
  const Positions* picked = context.input(0).At(dim);
  if (picked != nullptr && !context.TakesFromRequest(1, *picked)) return DataAxis(context);
  AxisFlowValue flow;
  for (int64_t d = 0; d < context.rank(1); ++d) {
    const Positions* from = d == dim ? nullptr : context.input(0).At(d);
    const Positions* at = context.input(1).At(d);
    if (from == nullptr && at == nullptr) continue;
    Positions found = AlongDim(from != nullptr ? *from : *at, d);
    const bool paired = from != nullptr && at != nullptr && from->inner == at->inner &&
                        from->repeated == at->repeated && from->extent == at->extent &&
                        !from->moved && !at->moved;
    if (d != dim && !paired) {
      context.Doubt("picks by data among the positions of");
      found.moved = true;
    }
    found.padding.reset();
    flow.along.push_back(found);
  }
  context.Set(0, std::move(flow));
}

namespace {

// Returns whether these positions lie one after another from index 0 on.
bool LieInOrder(const Positions* positions) {
  return positions != nullptr && positions->inner == 1 && !positions->moved &&
         !positions->repeated && positions->extent == Extent();
}

// GatherND whose places are along dim 0: it does what Gather does.
bool PicksRows(AxisContext& context) {
  const Positions* picked = context.input(0).At(0);
  const bool of_rows = context.node().op == GatherNdOp::kName && context.rank(1) > 0 &&
                       context.shape(1).back() == 1 &&
                       context.attributes().Int("batch_dims", 0) == 0;
  if (!of_rows || (picked != nullptr && !context.TakesFromRequest(1, *picked))) return false;
  const int64_t columns = context.rank(1) - 1;
  if (context.input(1).At(columns) != nullptr) return false;
  AxisFlowValue flow;
  for (const Positions& positions : context.input(1).along) {
    flow.along.push_back(AlongDim(positions, positions.dim));
    flow.along.back().padding.reset();
  }
  for (const Positions& positions : context.input(0).along) {
    if (positions.dim > 0) flow.along.push_back(AlongDim(positions, positions.dim + columns - 1));
  }
  context.Set(0, std::move(flow));
  return true;
}

// Returns the dim along which a scatter puts elements by places; nullopt: by places of several
// dims, or by more than a list of them.
std::optional<int64_t> DimOfPuts(const AxisContext& context) {
  if (context.node().op == ScatterElementsOp::kName) {
    return context.Dim(ScatterElementsOp::From(context.attributes()).axis);
  }
  const bool list = context.node().op == ScatterNdOp::kName && context.rank(1) == 2 &&
                    context.shape(1).back() == 1;
  return list ? std::optional<int64_t>(0) : std::nullopt;
}

// Elements that are put among others:
// - by places of the request, along the positions: what is put in the padding is nothing;
// - one for each position, into something that has none: where padding repeats the last position
//   its element is put once more, to the same place.
// Along other dims an element goes where it comes from.
bool PutsRows(AxisContext& context) {
  const std::optional<int64_t> dim = DimOfPuts(context);
  if (!dim.has_value()) return false;
  const bool by_elements = context.node().op == ScatterElementsOp::kName;
  const AxisFlowValue &data = context.input(0), &places = context.input(1),
                      &updates = context.input(2);
  AxisFlowValue flow;
  for (int64_t d = 0; d < context.rank(0); ++d) {
    const Positions *to = data.At(d), *from = updates.At(d);
    const Positions* at = by_elements || d == *dim ? places.At(d) : from;
    if (d == *dim) {
      if (to != nullptr &&
          (from != nullptr || at != nullptr || !context.TakesFromRequest(1, *to))) {
        return false;
      }
      if (from != nullptr || at != nullptr) {
        const std::string reduction = context.attributes().String("reduction", "none");
        const bool once = reduction == "none" || reduction == "max" || reduction == "min";
        if (!context.repeats_last() || !once || !LieInOrder(from) || !LieInOrder(at)) return false;
        continue;
      }
    } else if (to != nullptr || from != nullptr || at != nullptr) {
      if (!LieInOrder(to) || !LieInOrder(from) || !LieInOrder(at)) return false;
    }
    if (to == nullptr) continue;
    flow.along.push_back(*to);
    flow.along.back().padding.reset();
  }
  context.Set(0, std::move(flow));
  return true;
}

}  // namespace

// Elements are found or put by data. Places that a client's numbers may bring below zero are
// counted from the end, where the padding is.
void DataAxis(AxisContext& context) {
  const std::string& op = context.node().op;
  if (TakesRowByRow(context)) {
    AxisFlowValue flow;
    for (const Positions& positions : context.input(0).along) {
      Positions kept = AlongDim(positions, positions.dim);
      kept.padding.reset();
      flow.along.push_back(kept);
    }
    return context.Set(0, std::move(flow));
  }
  if (PicksRows(context) || PutsRows(context)) return;
  if (op == GatherElementsOp::kName || op == ScatterElementsOp::kName) {
    const int64_t dim = context.Dim(context.attributes().Int("axis", 0));
    const bool meets = context.input(0).At(dim) != nullptr;
    if (meets && context.MayCountFromEnd(1)) context.Mix(kMayCount);
  } else if (context.rank(1) > 0) {
    const int64_t first = op == GatherNdOp::kName ? context.attributes().Int("batch_dims", 0) : 0;
    for (int64_t column = 0; column < context.shape(1).back(); ++column) {
      const bool meets = context.input(0).At(first + column) != nullptr;
      if (meets && context.MayCountFromEnd(1, column)) context.Mix(kMayCount);
    }
  }
  if (context.AnyPositions()) context.Doubt("picks by data among the positions of");
}

// Turns each place into a line of zeros, as many as the depth says, with a one in it.
void OneHotAxis(AxisContext& context) {
  const int64_t rank = context.output_rank();
  const int64_t attribute = context.attributes().Int("axis", -1);
  const int64_t dim = attribute < 0 ? attribute + rank : attribute;
  if (context.output_shape()[dim] != context.larger_output_shape()[dim]) {
    const bool counts = context.OutputGrows(dim) && context.MayCountFromEnd(0);
    if (counts) context.Mix(kMayCount);
    return UnknownAxis(context);
  }
  AxisFlowValue flow;
  for (const Positions& positions : context.input(0).along) {
    flow.along.push_back(AlongDim(positions, positions.dim + (positions.dim >= dim ? 1 : 0)));
    flow.along.back().padding.reset();
  }
  context.Set(0, std::move(flow));
}

}  // namespace reprise::ops

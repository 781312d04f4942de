// Axis rules of ops that turn, enlarge or look up rows and planes, and keep all other dims apart.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/ops/axis/axis_rules.h"

namespace reprise::ops {
namespace {

constexpr char kLeaves[] = "moves elements across the positions of";
constexpr char kLooksUp[] = "looks up places among the positions of";

// Moves positions in a way that is not known.
void Leave(AxisContext& context, Positions& positions) {
  context.Doubt(kLeaves);
  positions.moved = true;
  positions.parts.clear();
  positions.compact = false;
  positions.padding.reset();
}

// Sets result 0 to operand 0, whose positions along other dims than `kept` are moved in a way that
// is not known.
template <typename Kept>
void KeepDims(AxisContext& context, Kept kept) {
  AxisFlowValue flow = context.input(0);
  for (Positions& positions : flow.along) {
    if (!kept(positions.dim)) Leave(context, positions);
  }
  context.Set(0, std::move(flow));
}

// Positions along the first dims of operand `i`, wherever a rule does not say what padding becomes.
AxisFlowValue AlongFirst(const AxisContext& context, size_t i, int64_t dims) {
  AxisFlowValue flow;
  for (const Positions& positions : context.input(i).along) {
    if (positions.dim >= dims) continue;
    flow.along.push_back(positions);
    flow.along.back().padding.reset();
  }
  return flow;
}

// Returns whether operand `i` has positions along its dim 0 where `rows` are positions of a batch,
// one for one.
bool HasRowsOf(const AxisContext& context, size_t i, const Positions* rows) {
  const Positions* own = context.input(i).At(0);
  if (rows == nullptr || own == nullptr) return rows == own;
  return !rows->moved && !own->moved && !rows->repeated && !own->repeated &&
         rows->inner == own->inner;
}

}  // namespace

namespace {

// Returns the positions of a result that has `before` more of them at the beginning and `after`
// more at the end, fewer where that is below zero. What is set after a request's own has to be in
// the padding already.
std::optional<Positions> Padded(const AxisContext& context, const Positions& positions,
                                int64_t before, int64_t after) {
  constexpr size_t kValue = 2;
  const std::string mode = context.attributes().String("mode", "constant");
  const bool plain = positions.inner == 1 && !positions.moved && !positions.repeated &&
                     !positions.compact && !context.is_batch();
  if (!plain || mode != "constant") return std::nullopt;
  const std::optional<double> value =
      context.has_input(kValue) ? context.Uniform(kValue) : std::optional<double>(0);
  if (after > 0 && (!value.has_value() || positions.padding != value)) return std::nullopt;
  Positions padded = positions;
  padded.extent = positions.extent.Through(before + after, 1).AtMultiplesOf(context.step());
  padded.parts.clear();
  if (after < 0) padded.padding.reset();
  const bool fits = context.CountOf(positions) == context.shape(0)[positions.dim] &&
                    context.OutputHas(padded.extent, positions.dim);
  return fits ? std::optional(padded) : std::nullopt;
}

}  // namespace

// Dims that nothing is added to keep their positions.
void PadAxis(AxisContext& context) {
  constexpr size_t kPads = 1, kAxes = 3;
  const auto pads = context.integers(kPads), larger = context.larger_integers(kPads);
  std::vector<int64_t> axes;
  if (context.has_input(kAxes)) {
    const auto named = context.integers(kAxes);
    if (!named.has_value()) return UnknownAxis(context);
    for (const int64_t axis : *named) axes.push_back(context.Dim(axis));
  } else {
    for (int64_t d = 0; d < context.rank(0); ++d) axes.push_back(d);
  }
  if (!pads || !larger || pads->size() != 2 * axes.size()) return UnknownAxis(context);
  AxisFlowValue flow = context.input(0);
  for (Positions& positions : flow.along) {
    for (size_t i = 0; i < axes.size(); ++i) {
      const size_t end = i + axes.size();
      const bool added =
          (*pads)[i] != 0 || (*pads)[end] != 0 || (*larger)[i] != 0 || (*larger)[end] != 0;
      if (axes[i] != positions.dim || !added) continue;
      const bool alike = (*pads)[i] == (*larger)[i] && (*pads)[end] == (*larger)[end];
      const auto padded =
          alike ? Padded(context, positions, (*pads)[i], (*pads)[end]) : std::nullopt;
      if (padded.has_value()) {
        positions = *padded;
      } else {
        Leave(context, positions);
      }
    }
  }
  context.Set(0, std::move(flow));
}

// Samples and, but for a number of them that make one, nothing else stay where they are.
void PlanesAxis(AxisContext& context) {
  KeepDims(context, [](int64_t dim) { return dim == 0; });
}

// Turns each row up to its own length, which is no longer than the row: elements after it stay.
void ReverseSequenceAxis(AxisContext& context) {
  constexpr size_t kLengths = 1;
  const int64_t rows = context.Dim(context.attributes().Int("batch_axis", 1));
  const int64_t time = context.Dim(context.attributes().Int("time_axis", 0));
  const AxisFlowValue& x = context.input(0);
  if (context.is_batch()) {
    if (x.At(time) != nullptr) context.Mix("turns round");
    if (!HasRowsOf(context, kLengths, x.At(rows)) || context.input(kLengths).own_place) {
      context.Doubt("turns rows by the lengths of others, along");
    }
  } else {
    if (x.At(rows) != nullptr || !context.input(kLengths).along.empty()) {
      context.Doubt("turns by lengths that follow the positions of");
    }
    if (const Positions* positions = x.At(time);
        positions != nullptr && (positions->moved || positions->repeated)) {
      context.Doubt("turns parts of the positions of");
    }
  }
  AxisFlowValue flow = x;
  for (Positions& positions : flow.along) {
    if (positions.dim == time) positions.padding.reset();
  }
  context.Set(0, std::move(flow));
}

// Adds up each token's embeddings, the one of its place among them, and each row of the mask.
void EmbedLayerNormAxis(AxisContext& context) {
  constexpr size_t kIds = 0, kFirstTable = 2, kMask = 7, kPlaces = 8;
  for (size_t i = kFirstTable; i < context.num_inputs(); ++i) {
    const bool by_token = i == kMask || i == kPlaces;
    if (!by_token && !context.input(i).along.empty()) {
      context.Doubt("looks up in tables that follow the positions of");
    }
  }
  AxisFlowValue tokens = AlongFirst(context, kIds, 2);
  // Requests of a batch lie anywhere, also where each token has its place by where it lies.
  const bool by_index = context.is_batch() && tokens.At(1) != nullptr;
  if (by_index || absl::c_any_of(tokens.along,
                                 [](const Positions& one) { return one.moved || one.repeated; })) {
    context.Doubt(kLooksUp);
  }
  AxisFlowValue counts;
  if (context.has_input(kMask)) {
    for (const Positions& positions : context.input(kMask).along) {
      if (positions.dim == 0) {
        counts.along.push_back(positions);
      } else if (context.IsRead(1) && positions.padding != 0) {
        context.Mix("adds up");
      }
    }
  } else if (const Positions* rows = context.input(kIds).At(0)) {
    counts.along.push_back(*rows);
  }
  context.Set(0, tokens);
  if (context.has_output(1)) context.Set(1, std::move(counts));
  if (context.has_output(2)) context.Set(2, std::move(tokens));
}

// Turns the features of each token by the angles of its place.
void RotaryAxis(AxisContext& context) {
  AxisFlowValue flow = context.input(0);
  for (Positions& positions : flow.along) {
    if (positions.dim == context.rank(0) - 1) context.Mix("turns pairs of");
    const bool by_index = context.is_batch() && positions.dim != 0;
    if (by_index || positions.moved || positions.repeated) context.Doubt(kLooksUp);
    positions.padding.reset();
  }
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    for (const Positions& positions : context.input(i).along) {
      const bool by_token = absl::c_any_of(context.input(0).along, [&](const Positions& one) {
        return one.extent == positions.extent && one.inner == positions.inner;
      });
      if (!by_token || positions.moved || positions.repeated) {
        context.Doubt("takes angles that follow the positions of");
      }
    }
  }
  context.Set(0, std::move(flow));
}

// Keeps one map a row of the batch. A longer image has other places.
void AffineGridAxis(AxisContext& context) {
  constexpr size_t kTheta = 0, kSizes = 1;
  AxisFlowValue flow;
  const auto size = context.integers(kSizes), larger = context.larger_integers(kSizes);
  const bool known = size.has_value() && larger.has_value() && size->size() == larger->size();
  if (!known || !std::equal(size->begin() + 2, size->end(), larger->begin() + 2)) {
    context.Doubt("counts places between both ends of");
  }
  for (const Positions& positions : context.input(kTheta).along) {
    if (positions.dim > 0) {
      context.Doubt("takes maps that follow the positions of");
      continue;
    }
    flow.along.push_back(positions);
    flow.along.back().padding.reset();
  }
  context.Set(0, std::move(flow));
}

// Indices say where an element goes, in the result of all rows.
void MaxUnpoolAxis(AxisContext& context) {
  if (context.AnyPositions()) context.Doubt("puts elements wherever numbers say over");
}

}  // namespace reprise::ops

// Axis rules of ops that end where the rows of a padded batch end (ops/windows/live.h).
#include <cmath>
#include <optional>
#include <vector>

#include "runtime/ops/axis/axis_rules.h"

namespace reprise::ops {
namespace {

constexpr size_t kLive = 0;     // operand of LiveExtent
constexpr size_t kExtents = 1;  // operand of LiveFill

// Positions along the rows of the batch stay there.
AxisFlowValue AlongRows(const AxisContext& context, size_t i) {
  AxisFlowValue flow;
  if (const Positions* rows = context.input(i).At(0)) {
    flow.along.push_back(*rows);
    flow.along.back().padding.reset();
  }
  return flow;
}

}  // namespace

void LiveExtentAxis(AxisContext& context) {
  AxisFlowValue flow = AlongRows(context, kLive);
  if (const Positions* live = context.input(kLive).At(1)) {
    const bool ends = live->padding == 0 && live->extent.is_whole() && live->inner == 1 &&
                      !live->moved && !live->repeated;
    if (!ends) context.Mix("counts without knowing where they end the positions of");
    flow.counts = Extent{.offset = context.attributes().Int("offset", 0),
                         .stride = context.attributes().Int("stride", 1)}
                      .AtMultiplesOf(context.step());
  }
  context.Set(0, std::move(flow));
}

// Checks that the rows of the extents lie along the rows of the data, in equal numbers.
void CheckRows(AxisContext& context, size_t extents = kExtents) {
  const Positions* rows = context.input(0).At(0);
  const Positions* own = context.input(extents).At(0);
  const bool paired = (rows == nullptr) == (own == nullptr) &&
                      (own == nullptr || (rows->inner % own->inner == 0 && !rows->moved &&
                                          !own->moved && !rows->repeated && !own->repeated &&
                                          context.shape(0)[0] / rows->inner ==
                                              context.shape(extents)[0] / own->inner));
  if (!paired) context.Mix("fills rows by the ends of others, along");
}

void LiveFillAxis(AxisContext& context) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", -1));
  const double value = context.attributes().Float("value", 0);
  const std::optional<Extent>& counts = context.input(kExtents).counts;
  AxisFlowValue flow = context.input(0);
  if (context.is_batch()) CheckRows(context);
  bool filled = false;
  for (Positions& positions : flow.along) {
    const bool here = positions.dim == dim;
    if (here && counts == positions.extent && positions.inner == 1 && !positions.moved &&
        !positions.repeated) {
      positions.padding = value;
      filled = true;
    } else if (here && (counts.has_value() || !context.is_batch())) {
      context.Doubt("fills another part than what lies behind the end of");
      positions.padding.reset();
    } else if (positions.padding != value) {
      positions.padding.reset();
    }
  }
  if (counts.has_value() && !filled) context.Doubt("fills elements by the number of positions of");
  const bool alone = flow.along.size() == 1;
  context.Set(0, std::move(flow));
  if (filled && alone && !std::isinf(value)) context.SetUnbounded(0, false);
}

void LiveMaskAxis(AxisContext& context) {
  const std::optional<Extent>& counts = context.input(0).counts;
  const int64_t last = context.output_rank() - 1;
  AxisFlowValue flow = AlongRows(context, 0);
  if (counts.has_value() && context.OutputHas(*counts, last)) {
    flow.along.push_back(
        {.dim = last, .padding = context.attributes().Float("value", 0), .extent = *counts});
  } else if (counts.has_value()) {
    context.Doubt("hides another part than what lies behind the end of");
  } else if (const auto extent = context.OutputExtent(last); extent.has_value()) {
    // Numbers of each row say which positions it hides, and no other position has a say.
    flow.along.push_back({.dim = last, .padding = std::nullopt, .extent = *extent});
  } else if (context.output_shape()[last] != context.larger_output_shape()[last]) {
    context.Doubt("hides positions that are not known to be those of");
  }
  context.Set(0, std::move(flow));
}

void LiveShareAxis(AxisContext& context) {
  const Attributes& attributes = context.attributes();
  const int64_t dim = attributes.Int("axis", -1), stride = attributes.Int("stride", 1);
  const int64_t reach = (attributes.Int("kernel", 1) - 1) * attributes.Int("dilation", 1);
  const int64_t pads =
      attributes.Int("begin", 0) + attributes.Int("end", 0) + attributes.Int("more", 0);
  AxisFlowValue flow = AlongRows(context, 0);
  if (const std::optional<Extent>& counts = context.input(0).counts) {
    const Extent extent =
        counts->Through(pads - reach - 1 + stride, stride).AtMultiplesOf(context.step());
    if (context.OutputHas(extent, dim)) {
      flow.along.push_back({.dim = dim, .extent = extent});
    } else {
      context.Doubt("shares windows out by another number than the positions of");
    }
  } else if (context.output_shape()[dim] != context.larger_output_shape()[dim]) {
    context.Doubt("shares windows out by the number of all positions of");
  }
  context.Set(0, std::move(flow));
}

namespace {

constexpr size_t kCompactSizes = 1, kCompactExtents = 2;  // operands of LiveCompact

// Returns the parts of the dim that a LiveCompact looks at, as its operands have them: one dim of
// each part is counted along the axis, all others have the same size at both sizes of it. Empty: it
// is something else.
std::vector<PositionPart> CompactedParts(const AxisContext& context) {
  const auto sizes = context.integers(kCompactSizes);
  const auto larger = context.larger_integers(kCompactSizes);
  const std::vector<int64_t> ranks = context.attributes().Ints("ranks");
  const std::vector<int64_t> extents = context.attributes().Ints("extents");
  if (!sizes || !larger || sizes->size() != larger->size() || extents.size() != sizes->size()) {
    return {};
  }
  std::vector<PositionPart> parts;
  size_t d = 0;
  for (const int64_t rank : ranks) {
    PositionPart& part = parts.emplace_back();
    bool counted = false;
    for (int64_t i = 0; i < rank && d < sizes->size(); ++i, ++d) {
      const size_t operand = kCompactExtents + static_cast<size_t>(extents[d]);
      const std::optional<Extent> counts =
          extents[d] < 0 ? std::nullopt : context.input(operand).counts;
      if (counts.has_value()) {
        const bool fits = !counted && counts->At(context.axis_size()) == (*sizes)[d] &&
                          counts->At(context.larger_axis_size()) == (*larger)[d];
        if (!fits) return {};
        part.extent = *counts;
        counted = true;
      } else if ((*sizes)[d] != (*larger)[d]) {
        return {};
      } else {
        (counted ? part.inner : part.lines) *= (*sizes)[d];
      }
    }
    if (!counted) return {};
  }
  return d == sizes->size() ? parts : std::vector<PositionPart>();
}

}  // namespace

// Moves each row's own elements to the front, in their order: how many of them come before another
// one is told by places before the end alone, so that nothing past it has a say.
void LiveCompactAxis(AxisContext& context) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", -1));
  AxisFlowValue flow = context.input(0);
  for (size_t i = kCompactExtents; i < context.num_inputs() && context.is_batch(); ++i) {
    CheckRows(context, i);
  }
  bool any_counts = false;
  for (size_t i = kCompactExtents; i < context.num_inputs(); ++i) {
    any_counts = any_counts || context.input(i).counts.has_value();
    for (const Positions& positions : context.input(i).along) {
      if (!context.is_batch() || positions.dim != 0) {
        context.Doubt("counts by numbers that follow the positions of");
      }
    }
  }
  bool compacted = false;
  for (Positions& positions : flow.along) {
    if (positions.padding != 0) positions.padding.reset();
    if (positions.dim != dim) continue;
    const std::vector<PositionPart> parts = CompactedParts(context);
    if (parts.empty() || positions.KnownParts() != parts) {
      context.Doubt("moves elements by other numbers than those of the positions of");
      positions.parts.clear();
      positions.compact = false;
      positions.moved = true;
      continue;
    }
    positions = {.dim = dim, .padding = 0, .moved = true, .compact = true};
    compacted = true;
  }
  if (any_counts && !compacted) context.Doubt("moves elements by the number of positions of");
  context.Set(0, std::move(flow));
}

}  // namespace reprise::ops

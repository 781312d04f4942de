// Axis rules of what ends where the rows of a padded batch end (ops/windows/live.h).
#include <cmath>
#include <optional>

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
    flow.along.back().padding = PaddingValue::Unknown();
  }
  return flow;
}

}  // namespace

void LiveExtentAxis(AxisContext& context) {
  AxisFlowValue flow = AlongRows(context, kLive);
  if (const Positions* live = context.input(kLive).At(1)) {
    const bool ends = live->guarded && live->padding.Is(0) && live->extent.is_whole() &&
                      live->inner == 1 && !live->moved && !live->repeated;
    if (!ends) context.Mix("counts without knowing where they end the positions of", false);
    flow.counts = Extent{.offset = context.attributes().Int("offset", 0),
                         .stride = context.attributes().Int("stride", 1)}
                      .AtMultiplesOf(context.step());
  }
  context.Set(0, std::move(flow));
}

// The rows of the extents lie along those of the data, each for the same number of them.
void CheckRows(AxisContext& context) {
  const Positions* rows = context.input(0).At(0);
  const Positions* own = context.input(kExtents).At(0);
  const bool paired =
      (rows == nullptr) == (own == nullptr) &&
      (own == nullptr ||
       (rows->inner % own->inner == 0 && !rows->moved && !own->moved && !rows->repeated &&
        !own->repeated && context.shape(0)[0] / rows->inner == context.shape(1)[0] / own->inner));
  if (!paired) context.Mix("fills rows by the ends of others, along", /*guarded=*/false);
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
      positions.padding = PaddingValue::Constant(value);
      positions.guarded = false;
      filled = true;
    } else if (here && (counts.has_value() || !context.is_batch())) {
      context.Doubt("fills another part than what lies behind the end of");
      positions.padding = PaddingValue::Unknown();
    } else if (!positions.padding.Is(value)) {
      positions.padding = PaddingValue::Unknown();
    }
  }
  if (counts.has_value() && !filled) context.Doubt("fills elements by the number of positions of");
  // Where a window hides keys a query may see none but those behind the end.
  if (filled && std::isinf(value) && flow.structure == Structure::kAny) {
    context.Doubt("hides what a table of the model may have left, along");
  }
  const bool alone = flow.along.size() == 1;
  context.Set(0, std::move(flow));
  if (filled && alone) context.SetUnbounded(0, std::isinf(value));
  if (std::isinf(value)) context.SetUnbounded(0, true);
}

void LiveMaskAxis(AxisContext& context) {
  const std::optional<Extent>& counts = context.input(0).counts;
  const int64_t last = context.output_rank() - 1;
  AxisFlowValue flow = AlongRows(context, 0);
  if (counts.has_value() && context.OutputHas(*counts, last)) {
    flow.along.push_back({.dim = last,
                          .padding = PaddingValue::Constant(context.attributes().Float("value", 0)),
                          .extent = *counts});
  } else if (counts.has_value()) {
    context.Doubt("hides another part than what lies behind the end of");
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
      context.Doubt("shares windows out by another number than that of the positions of");
    }
  } else if (context.output_shape()[dim] != context.larger_output_shape()[dim]) {
    context.Doubt("shares windows out by the number of all positions of");
  }
  context.Set(0, std::move(flow));
}

}  // namespace reprise::ops

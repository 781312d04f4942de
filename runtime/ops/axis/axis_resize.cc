// The axis rule of Resize: where it copies each position a whole number of times, the copies lie as
// the positions of a finer stride do.
#include <optional>
#include <string>
#include <vector>

#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/windows/resize.h"
#include "runtime/ops/windows/resize_op.h"

namespace reprise::ops {
namespace {

// Returns whether element i of a result is found by i and the scale alone, at any size.
bool FindsByPlace(const Attributes& attributes) {
  const std::string places = attributes.String("coordinate_transformation_mode", "half_pixel");
  return attributes.String("mode", "nearest") == "nearest" &&
         (places == "asymmetric" || places == "half_pixel" || places == "pytorch_half_pixel") &&
         attributes.String("keep_aspect_ratio_policy", "stretch") == "stretch" &&
         attributes.Int("antialias", 0) == 0;
}

// Returns whether a Resize makes `copies` elements in a row of each one along `dim` of an operand
// of shape `in`. `scales`, `sizes`: its operands, null where they are left out.
bool Repeats(const Node& node, const Shape& in, int64_t dim, int64_t copies, const Tensor* scales,
             const Tensor* sizes) {
  const auto values = [](const Tensor* tensor) {
    return tensor == nullptr ? std::vector<double>() : tensor->ToDoubles();
  };
  const std::vector<double> by = values(scales);
  const std::vector<int64_t> axes = node.attributes.Ints("axes");
  for (size_t i = 0; i < by.size(); ++i) {
    const int64_t axis = axes.empty() ? static_cast<int64_t>(i) : i < axes.size() ? axes[i] : -1;
    const bool here = axis == dim || axis + static_cast<int64_t>(in.size()) == dim;
    if (here && by[i] != static_cast<double>(copies)) return false;
  }
  const auto taps = ResizeTapsOf(node, in, by, values(sizes));
  if (!taps.ok() || dim >= static_cast<int64_t>(taps->size())) return false;
  const ResizeTaps& along = (*taps)[dim];
  for (size_t i = 0; i < along.size(); ++i) {
    const bool copied = along[i].size() == 1 && along[i][0].weight == 1 &&
                        along[i][0].at == static_cast<int64_t>(i) / copies;
    if (!copied) return false;
  }
  return static_cast<int64_t>(along.size()) == copies * in[dim];
}

// Returns how many elements in a row each position along `dim` becomes, at any number of positions;
// nullopt where it is something else.
std::optional<int64_t> CopiesAlong(const AxisContext& context, int64_t dim) {
  const int64_t size = context.shape(0)[dim], larger = context.larger_shape(0)[dim];
  const int64_t copies = size > 0 ? context.output_shape()[dim] / size : 0;
  const bool known =
      context.has_input(ResizeOp::kScales) == (context.constant(ResizeOp::kScales) != nullptr) &&
      context.has_input(ResizeOp::kSizes) == (context.constant(ResizeOp::kSizes) != nullptr);
  const bool multiplies = copies > 0 && context.output_shape()[dim] == copies * size &&
                          context.larger_output_shape()[dim] == copies * larger;
  if (!known || !multiplies || !FindsByPlace(context.attributes())) return std::nullopt;
  const bool repeats =
      Repeats(context.node(), context.shape(0), dim, copies, context.constant(ResizeOp::kScales),
              context.constant(ResizeOp::kSizes)) &&
      Repeats(context.node(), context.larger_shape(0), dim, copies,
              context.larger_constant(ResizeOp::kScales),
              context.larger_constant(ResizeOp::kSizes));
  return repeats ? std::optional(copies) : std::nullopt;
}

}  // namespace

void ResizeAxis(AxisContext& context) {
  // A crop of the whole depends on the size.
  if (context.attributes().String("coordinate_transformation_mode", "") == "tf_crop_and_resize" &&
      !context.input(0).along.empty()) {
    return UnknownAxis(context);
  }
  AxisFlowValue flow;
  for (const Positions& positions : context.input(0).along) {
    Positions& out = flow.along.emplace_back(positions);
    out.padding.reset();
    const int64_t dim = positions.dim;
    if (context.output_shape()[dim] == context.shape(0)[dim] &&
        context.larger_output_shape()[dim] == context.larger_shape(0)[dim]) {
      continue;
    }
    const bool plain =
        !context.is_batch() && positions.inner == 1 && !positions.moved && !positions.repeated;
    const std::optional<int64_t> copies = plain ? CopiesAlong(context, dim) : std::nullopt;
    const std::optional<Extent> extent =
        copies.has_value() ? positions.extent.Times(*copies, context.step()) : std::nullopt;
    if (extent.has_value() && context.OutputHas(*extent, dim)) {
      out.extent = *extent;
      continue;
    }
    // For all coordinates: with more samples than positions the last ones lie past the last
    // position, where its own value would be continued.
    if (context.output_shape()[dim] > context.shape(0)[dim] &&
        context.attributes().String("mode", "nearest") != "nearest") {
      context.Mix("interpolates between the positions of");
    }
    context.Doubt("samples between the positions of");
    out.moved = true;
  }
  context.Set(0, std::move(flow));
}

}  // namespace reprise::ops

// Taps of a Conv that meet nothing but padding in every window are cut from its weights. Where
// windows are dilated widely over small planes, often all taps but the middle ones go.
#include <algorithm>
#include <numeric>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/windows.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// Along one dim of `size` elements.
struct Taps {
  int64_t begin = 0, end = 0;  // those that stay
  int64_t pad_begin = 0, pad_end = 0;
};

Taps UsefulTaps(const ops::Windows& windows, size_t d, int64_t size) {
  const int64_t step = windows.dilations[d], last = (windows.out[d] - 1) * windows.strides[d];
  const auto sees = [&](int64_t tap) {
    const int64_t first = tap * step - windows.pad_begin[d];
    return first < size && first + last >= 0;
  };
  Taps taps = {0, windows.kernel[d], windows.pad_begin[d], windows.pad_end[d]};
  // Taps that are cut in front come off the padding there, which cannot become negative.
  while (taps.begin + 1 < taps.end && !sees(taps.begin) && taps.pad_begin >= step) {
    ++taps.begin;
    taps.pad_begin -= step;
  }
  while (taps.end - 1 > taps.begin && !sees(taps.end - 1) && taps.pad_end >= step) {
    --taps.end;
    taps.pad_end -= step;
  }
  return taps;
}

absl::StatusOr<bool> CropWindowsAt(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  if (node.op != ConvOp::kName || !IsWeight(graph, node.inputs[1])) return false;
  const std::optional<Shape>& data = ShapeOf(graph, node.inputs[0]);
  const std::optional<Shape>& weight = ShapeOf(graph, node.inputs[1]);
  if (!data.has_value() || !weight.has_value() || NumElements(*data) == 0) return false;
  const std::vector<int64_t> kernel(weight->begin() + 2, weight->end());
  ASSIGN_OR_RETURN(const ops::Windows windows, ops::WindowsOf(node, *data, kernel));
  Shape shape = *weight;
  std::vector<int64_t> starts, ends, sizes, pads(2 * kernel.size());
  for (size_t d = 0; d < kernel.size(); ++d) {
    const Taps taps = UsefulTaps(windows, d, (*data)[d + 2]);
    starts.push_back(taps.begin);
    ends.push_back(taps.end);
    sizes.push_back(shape[d + 2] = taps.end - taps.begin);
    pads[d] = taps.pad_begin;
    pads[d + kernel.size()] = taps.pad_end;
  }
  if (shape == *weight) return false;
  std::vector<int64_t> axes(kernel.size());
  std::iota(axes.begin(), axes.end(), 2);
  const auto constant = [&](const std::vector<int64_t>& values) {
    const auto count = static_cast<int64_t>(values.size());
    return graph.AddConstant("", Tensor::FromVector<int64_t>(DType::kInt64, {count}, values));
  };
  std::vector<ValueId> inputs = node.inputs;
  ASSIGN_OR_RETURN(inputs[1],
                   AddWeight(graph, SliceOp::kName, {},
                             {node.inputs[1], constant(starts), constant(ends), constant(axes)},
                             graph.value(node.inputs[1]).dtype, shape));
  Attributes attributes = node.attributes;
  attributes.Set("kernel_shape", sizes);
  attributes.Set("pads", pads);
  attributes.Set("auto_pad", std::string("NOTSET"));
  ASSIGN_OR_RETURN(const ValueId cropped,
                   AddInferred(graph, ConvOp::kName, inputs, std::move(attributes), node.name));
  Replace(graph, node.outputs[0], cropped);
  return true;
}

}  // namespace

std::unique_ptr<Pass> CropWindows() { return PassOfNodes("crop_windows", CropWindowsAt); }

}  // namespace reprise

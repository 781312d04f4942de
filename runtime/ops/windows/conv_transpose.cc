#include "runtime/ops/windows/conv_transpose.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/windows/conv.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::ops {
namespace {

absl::StatusOr<TransposedWindows> WindowsOfNode(const Node& node, const Shape& x,
                                                const Shape& weight) {
  return TransposedWindowsOf(node, x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
}

// Adds `weight` times the elements of one plane to the result's elements that tap `tap` of their
// windows reaches. Each sum is added up in the order of channels and taps.
template <typename T, typename C>
void SpreadTap(const TransposedWindows& t, const T* x, int64_t tap, C weight, C* sums) {
  const Windows& w = t.windows;
  const int64_t stride = w.strides.back();
  ForEachRowOfTap(w, t.spatial, tap, [&](int64_t row, int64_t first, int64_t end, int64_t offset) {
    const T* from = x + row * w.out.back();
    for (int64_t i = first; i < end; ++i) {
      sums[offset + i * stride] += weight * static_cast<C>(from[i]);
    }
  });
}

// Returns the result's shape for an operand of shape `x`, whose channels come after the batch.
absl::StatusOr<SizeList> ShapeOfResult(InferContext& context, const SizeList& x) {
  const SizeList& weight = context.shape(1);
  const int64_t group = ConvTransposeOp::From(context.attributes()).group;
  if (group < 1 || x[1] % group != 0 || weight[0] != x[1]) {
    return absl::InvalidArgumentError(absl::StrCat("a weight ", ShapeToString(weight), " in ",
                                                   group, " groups does not fit ", x[1],
                                                   " channels"));
  }
  ASSIGN_OR_RETURN(
      const BasicTransposedWindows<Size> windows,
      TransposedWindowsOf(context.node(), x, PinnedAll(absl::Span<const Size>(weight).subspan(2))));
  const std::vector<int64_t>& kernel = windows.windows.kernel;
  if (!std::equal(kernel.begin(), kernel.end(), weight.begin() + 2)) {
    return absl::InvalidArgumentError(absl::StrCat("kernel_shape ", ShapeToString(kernel),
                                                   " does not fit the weight ",
                                                   ShapeToString(weight)));
  }
  const Size maps = weight[1] * group;
  RETURN_IF_ERROR(CheckConvBias(context, maps));
  SizeList shape = {x[0], maps};
  shape.insert(shape.end(), windows.spatial.begin(), windows.spatial.end());
  return shape;
}

}  // namespace

absl::Status ConvTransposeRule(InferContext& context) {
  RETURN_IF_ERROR(CheckConvOperands(context));
  ASSIGN_OR_RETURN(SizeList shape, ShapeOfResult(context, context.shape(0)));
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status ConvTransposeKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const TensorView& weight = context.inputs[1];
  ASSIGN_OR_RETURN(const TransposedWindows t, WindowsOfNode(context.node, in.shape, weight.shape));
  const int64_t in_plane = NumElements(t.windows.out), out_plane = NumElements(t.spatial);
  const int64_t batch = in.shape[0], channels = in.shape[1];
  const int64_t groups = ConvTransposeOp::From(context.node.attributes).group;
  const int64_t group_channels = channels / groups, group_maps = weight.shape[1];
  const int64_t maps = groups * group_maps;
  const int64_t taps = NumElements(t.windows.kernel);
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    using C = Compute<T>;
    std::vector<C> sums(out_plane);
    for (int64_t at = 0; at < batch * maps; ++at) {
      const int64_t map = at % maps;
      const C bias = HasInput(context, 2) ? static_cast<C>(context.inputs[2].as<T>()[map]) : C(0);
      std::fill(sums.begin(), sums.end(), bias);
      for (int64_t c = 0; c < group_channels; ++c) {
        const int64_t channel = map / group_maps * group_channels + c;
        const T* x = in.as<T>() + (at / maps * channels + channel) * in_plane;
        const T* taps_of_map = weight.as<T>() + (channel * group_maps + map % group_maps) * taps;
        for (int64_t tap = 0; tap < taps; ++tap) {
          SpreadTap<T, C>(t, x, tap, static_cast<C>(taps_of_map[tap]), sums.data());
        }
      }
      T* out = context.outputs[0].as<T>() + at * out_plane;
      for (int64_t i = 0; i < out_plane; ++i) out[i] = static_cast<T>(sums[i]);
    }
  });
}

absl::Status FusedConvTransposeRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  RETURN_IF_ERROR(CheckConvActivation(FusedConvTransposeOp::From(context.attributes()).activation));
  ASSIGN_OR_RETURN(const ConvLayout layout, ConvLayoutOf(context.attributes()));
  RETURN_IF_ERROR(CheckConvOperands(context));
  const SizeList& x = context.shape(0);
  ASSIGN_OR_RETURN(SizeList shape, ShapeOfResult(context, layout.x_last ? ChannelsFirst(x) : x));
  context.SetOutput(0, context.dtype(0), layout.y_last ? ChannelsLast(shape) : std::move(shape));
  return absl::OkStatus();
}

absl::Status FusedConvTransposeKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const ConvLayout layout, ConvLayoutOf(context.node.attributes));
  RETURN_IF_ERROR(RunInLayout(context, layout, ConvTransposeKernel));
  const MutableTensorView& out = context.outputs[0];
  ApplyConvActivation(context.node.attributes, out.as<float>(), out.num_elements());
  return absl::OkStatus();
}

}  // namespace reprise::ops

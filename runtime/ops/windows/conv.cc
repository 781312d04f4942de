#include "runtime/ops/windows/conv.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::ops {
namespace {

absl::StatusOr<Windows> ConvWindows(const Node& node, const Shape& x, const Shape& weight) {
  return WindowsOf(node, x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
}

// Adds `weight` times the elements that tap `tap` sees to the sums of one plane. Each sum is added
// up in the order of channels and taps, at any position and number of windows.
template <typename T, typename C>
void AddTap(const Windows& w, const Shape& spatial, const T* x, int64_t tap, C weight, C* sums) {
  const int64_t stride = w.strides.back();
  ForEachRowOfTap(w, spatial, tap, [&](int64_t row, int64_t first, int64_t end, int64_t offset) {
    C* to = sums + row * w.out.back();
    if (stride == 1) {
      const T* from = x + offset;
      for (int64_t o = first; o < end; ++o) to[o] += weight * static_cast<C>(from[o]);
    } else {
      for (int64_t o = first; o < end; ++o) {
        to[o] += weight * static_cast<C>(x[offset + o * stride]);
      }
    }
  });
}

constexpr size_t kResidual = 3;

}  // namespace

absl::Status CheckConvBias(InferContext& context, Size maps) {
  if (!context.has_input(2)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckSameType(context, 0, 2));
  if (context.shape(2) == SizeList{maps}) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a bias ", ShapeToString(context.shape(2)), " does not fit ", maps, " maps"));
}

absl::Status CheckConvRanks(const InferContext& context) {
  if (context.rank(0) < 3) {
    return RankError("its operand has no dims after batch and channel");
  }
  return CheckRank(context, 1, context.rank(0));
}

absl::Status CheckConvOperands(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  RETURN_IF_ERROR(CheckSameType(context, 0, 1));
  return CheckConvRanks(context);
}

absl::StatusOr<SizeList> ConvShape(const InferContext& context) {
  RETURN_IF_ERROR(CheckConvRanks(context));
  return ConvShape(context.node(), context.shape(0), context.shape(1));
}

absl::StatusOr<SizeList> ConvShape(const Node& node, const SizeList& x, const SizeList& weight) {
  const int64_t group = ConvOp::From(node.attributes).group;
  if (group < 1 || x[1] % group != 0 || weight[0] % group != 0 || weight[1] != x[1] / group) {
    return absl::InvalidArgumentError(absl::StrCat("a weight ", ShapeToString(weight), " in ",
                                                   group, " groups does not fit ", x[1],
                                                   " channels"));
  }
  ASSIGN_OR_RETURN(const BasicWindows<Size> windows,
                   WindowsOf(node, x, PinnedAll(absl::Span<const Size>(weight).subspan(2))));
  if (!std::equal(windows.kernel.begin(), windows.kernel.end(), weight.begin() + 2)) {
    return absl::InvalidArgumentError(absl::StrCat("kernel_shape ", ShapeToString(windows.kernel),
                                                   " does not fit the weight ",
                                                   ShapeToString(weight)));
  }
  return WindowsShape(windows, x[0], weight[0]);
}

absl::Status ConvRule(InferContext& context) {
  RETURN_IF_ERROR(CheckConvOperands(context));
  ASSIGN_OR_RETURN(SizeList shape, ConvShape(context));
  RETURN_IF_ERROR(CheckConvBias(context, shape[1]));
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status ConvKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const TensorView& weight = context.inputs[1];
  ASSIGN_OR_RETURN(const Windows w, ConvWindows(context.node, in.shape, weight.shape));
  const Shape spatial(in.shape.begin() + 2, in.shape.end());
  const int64_t in_plane = NumElements(spatial), out_plane = NumElements(w.out);
  const int64_t batch = in.shape[0], channels = in.shape[1], maps = weight.shape[0];
  const int64_t group_channels = weight.shape[1];
  const int64_t group_maps = maps / ConvOp::From(context.node.attributes).group;
  const int64_t taps = NumElements(w.kernel);
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
        const T* taps_of_map = weight.as<T>() + (map * group_channels + c) * taps;
        for (int64_t tap = 0; tap < taps; ++tap) {
          AddTap<T, C>(w, spatial, x, tap, static_cast<C>(taps_of_map[tap]), sums.data());
        }
      }
      T* out = context.outputs[0].as<T>() + at * out_plane;
      for (int64_t i = 0; i < out_plane; ++i) out[i] = static_cast<T>(sums[i]);
    }
  });
}

absl::Status CheckConvActivation(absl::string_view activation) {
  for (absl::string_view known : {"clip", "leaky_relu", "elu", "hard_swish", "mish"}) {
    if (activation == known) return absl::OkStatus();
  }
  return CheckActivation(activation);
}

void ApplyConvActivation(const Attributes& attributes, float* y, int64_t count) {
  const auto map = [&](auto f) {
    for (int64_t i = 0; i < count; ++i) y[i] = f(y[i]);
  };
  constexpr float kLargest = std::numeric_limits<float>::max();
  const std::string activation = FusedConvOp::From(attributes).activation;
  if (activation == "clip") {
    const float low = attributes.Float("low", -kLargest);
    const float high = attributes.Float("high", kLargest);
    map([&](float x) {
      x = x < low ? low : x;
      return x > high ? high : x;
    });
  } else if (activation == "leaky_relu") {
    map([slope = attributes.Float("slope", 0)](float x) { return x < 0 ? x * slope : x; });
  } else if (activation == "elu") {
    map([slope = attributes.Float("slope", 0)](float x) {
      return x < 0 ? slope * std::expm1(x) : x;
    });
  } else if (activation == "mish") {
    map([](float x) {
      const float softplus = x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
      return x * std::tanh(softplus);
    });
  } else if (activation == "hard_swish") {
    map([](float x) { return x * std::clamp(x / 6 + 0.5f, 0.0f, 1.0f); });
  } else {
    ApplyActivation(activation, y, count);
  }
}

absl::StatusOr<ConvLayout> ConvLayoutOf(const Attributes& attributes) {
  const std::string layout = FusedConvOp::From(attributes).layout;
  if (layout == "first") return ConvLayout{};
  if (layout == "last") return ConvLayout{true, true};
  if (layout == "to_last") return ConvLayout{false, true};
  return absl::InvalidArgumentError(
      absl::StrCat("layout '", layout, "' is not one of first, last, to_last"));
}

absl::Status FusedConvRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  RETURN_IF_ERROR(CheckConvActivation(FusedConvOp::From(context.attributes()).activation));
  ASSIGN_OR_RETURN(const ConvLayout layout, ConvLayoutOf(context.attributes()));
  RETURN_IF_ERROR(CheckConvOperands(context));
  const SizeList& x = context.shape(0);
  ASSIGN_OR_RETURN(SizeList out, ConvShape(context.node(), layout.x_last ? ChannelsFirst(x) : x,
                                           context.shape(1)));
  RETURN_IF_ERROR(CheckConvBias(context, out[1]));
  if (layout.y_last) out = ChannelsLast(out);
  if (context.has_input(kResidual)) {
    RETURN_IF_ERROR(CheckSameType(context, 0, kResidual));
    if (context.shape(kResidual) != out) {
      return absl::InvalidArgumentError(absl::StrCat("the residual has the shape ",
                                                     ShapeToString(context.shape(kResidual)),
                                                     ", the result ", ShapeToString(out)));
    }
  }
  context.SetOutput(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

absl::Status RunInLayout(const KernelContext& context, const ConvLayout& layout, Kernel& kernel) {
  const MutableTensorView& out = context.outputs[0];
  const int64_t count = out.num_elements();
  if ((!layout.x_last && !layout.y_last) || count == 0) return kernel(context);
  std::vector<TensorView> inputs(context.inputs.begin(), context.inputs.end());
  const int64_t batch = inputs[0].shape[0];
  std::vector<float> x, first(count);
  if (layout.x_last) {
    const int64_t channels = inputs[0].shape.back();
    x = TurnedPlanes(inputs[0].as<float>(), batch, inputs[0].num_elements() / batch / channels,
                     channels);
    inputs[0] = {DType::kFloat32, ChannelsFirst(inputs[0].shape), x.data()};
  }
  const MutableTensorView results[1] = {
      {DType::kFloat32, layout.y_last ? ChannelsFirst(out.shape) : out.shape, first.data()}};
  RETURN_IF_ERROR(kernel({context.node, inputs, results, context.errors}));
  const int64_t maps = results[0].shape[1];
  absl::c_copy(
      layout.y_last ? TurnedPlanes(first.data(), batch, maps, count / batch / maps) : first,
      out.as<float>());
  return absl::OkStatus();
}

absl::Status FusedConvKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const ConvLayout layout, ConvLayoutOf(context.node.attributes));
  RETURN_IF_ERROR(RunInLayout(context, layout, ConvKernel));
  const MutableTensorView& out = context.outputs[0];
  float* y = out.as<float>();
  const int64_t count = out.num_elements();
  if (HasInput(context, kResidual)) {
    const float* residual = context.inputs[kResidual].as<float>();
    for (int64_t i = 0; i < count; ++i) y[i] += residual[i];
  }
  ApplyConvActivation(context.node.attributes, y, count);
  return absl::OkStatus();
}

}  // namespace reprise::ops

#include "runtime/ops/reduce/norm.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/reduce/channel_norm_op.h"
#include "runtime/ops/reduce/layer_norm_op.h"

namespace reprise::ops {
namespace {

// Calls f(x, y) on each line along the axis, x the elements as double-width floats, y where to
// write.
template <typename F>
absl::Status AlongAxis(const KernelContext& context, F f) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", -1, static_cast<int64_t>(in.shape.size())));
  const absl::Span<const int64_t> shape = in.shape;
  const int64_t outer = NumElements(shape.first(axis));
  const int64_t size = shape[axis];
  const int64_t inner = NumElements(shape.subspan(axis + 1));
  if (in.num_elements() == 0) return absl::OkStatus();
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    using C = Compute<T>;
    std::vector<C> line(size);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t base = o * size * inner + i;
        for (int64_t k = 0; k < size; ++k) line[k] = in.as<T>()[base + k * inner];
        f(absl::MakeSpan(line));
        for (int64_t k = 0; k < size; ++k) {
          out.as<T>()[base + k * inner] = static_cast<T>(line[k]);
        }
      }
    }
  });
}

// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta over `size` elements, statistics in
// double; the mean is left alone when `centred` is false (root mean square).
struct NormResult {
  double mean;
  double inverse;
};
template <typename T>
NormResult NormalizeLine(const T* x, T* y, int64_t size, double epsilon, const T* gamma,
                         const T* beta, bool centred) {
  using C = Compute<T>;
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += static_cast<C>(x[i]);
  const double mean = centred ? sum / static_cast<double>(size) : 0;
  double squares = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double d = static_cast<C>(x[i]) - mean;
    squares += d * d;
  }
  // A variance beyond the range of C is infinite, as in ONNX's steps of that type.
  const C variance = static_cast<C>(squares / static_cast<double>(size));
  const double inverse = 1 / std::sqrt(static_cast<double>(variance) + epsilon);
  for (int64_t i = 0; i < size; ++i) {
    double value = (static_cast<C>(x[i]) - mean) * inverse;
    if (gamma != nullptr) value *= static_cast<C>(gamma[i]);
    if (beta != nullptr) value += static_cast<C>(beta[i]);
    y[i] = static_cast<T>(static_cast<C>(value));
  }
  return {mean, inverse};
}

// Scale and bias broadcast to the normalised dims; copied to that size.
template <typename T>
std::vector<T> Spread(const KernelContext& context, size_t i,
                      absl::Span<const int64_t> normalized) {
  std::vector<T> values;
  if (!HasInput(context, i)) return values;
  values.resize(NumElements(normalized));
  BroadcastApply(normalized, values.data(), context.inputs[i].as<T>(), context.inputs[i].shape,
                 [](T x) { return x; });
  return values;
}

absl::Status CheckNormOperand(const InferContext& context, size_t i,
                              absl::Span<const Size> normalized) {
  RETURN_IF_ERROR(CheckType(context, i, kFloats));
  RETURN_IF_ERROR(CheckSameType(context, 0, i));
  ASSIGN_OR_RETURN(const SizeList shape, BroadcastShapes(normalized, context.shape(i)));
  if (shape != SizeList(normalized.begin(), normalized.end())) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " does not broadcast to ", ShapeToString(normalized)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SoftmaxRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  RETURN_IF_ERROR(AxisAttribute(context.node(), "axis", -1, context.rank(0)).status());
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status SoftmaxKernel(const KernelContext& context) {
  return AlongAxis(context, [](auto line) {
    const auto largest = *std::max_element(line.begin(), line.end());
    double sum = 0;
    for (auto& x : line) sum += (x = std::exp(x - largest));
    for (auto& x : line) x = static_cast<std::decay_t<decltype(x)>>(x / sum);
  });
}

absl::Status LogSoftmaxKernel(const KernelContext& context) {
  return AlongAxis(context, [](auto line) {
    const auto largest = *std::max_element(line.begin(), line.end());
    double sum = 0;
    for (auto x : line) sum += std::exp(x - largest);
    for (auto& x : line) x = static_cast<std::decay_t<decltype(x)>>(x - largest - std::log(sum));
  });
}

absl::Status HardmaxKernel(const KernelContext& context) {
  return AlongAxis(context, [](auto line) {
    const auto at = std::max_element(line.begin(), line.end()) - line.begin();
    std::fill(line.begin(), line.end(), 0);
    line[at] = 1;
  });
}

absl::Status LayerNormalizationRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttribute(context.node(), "axis", -1, context.rank(0)));
  const absl::Span<const Size> normalized = absl::Span<const Size>(context.shape(0)).subspan(axis);
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (context.has_input(i)) RETURN_IF_ERROR(CheckNormOperand(context, i, normalized));
  }
  ASSIGN_OR_RETURN(const DType stash, DTypeFromOnnx(context.attributes().Int(
                                          "stash_type", OnnxNumber(DType::kFloat32))));
  SizeList statistics = context.shape(0);
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  context.SetOutput(0, context.dtype(0), context.shape(0));
  context.SetOutput(1, stash, statistics);
  context.SetOutput(2, stash, statistics);
  return absl::OkStatus();
}

namespace {

absl::Status NormalizeKernel(const KernelContext& context, bool centred) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", -1, static_cast<int64_t>(in.shape.size())));
  const absl::Span<const int64_t> shape = in.shape;
  const int64_t rows = NumElements(shape.first(axis));
  const int64_t size = NumElements(shape.subspan(axis));
  const float epsilon = LayerNormalizationOp::From(context.node).epsilon;
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    const std::vector<T> gamma = Spread<T>(context, 1, shape.subspan(axis));
    const std::vector<T> beta = Spread<T>(context, 2, shape.subspan(axis));
    for (int64_t row = 0; row < rows; ++row) {
      const NormResult result = NormalizeLine(
          in.as<T>() + row * size, context.outputs[0].as<T>() + row * size, size, epsilon,
          gamma.empty() ? nullptr : gamma.data(), beta.empty() ? nullptr : beta.data(), centred);
      const double statistics[2] = {result.mean, result.inverse};
      for (size_t o : {1, 2}) {
        if (!HasOutput(context, o)) continue;
        (void)Dispatch(FloatList{}, context.outputs[o].dtype, [&]<typename S>() {
          context.outputs[o].as<S>()[row] =
              static_cast<S>(static_cast<Compute<S>>(statistics[o - 1]));
        });
      }
    }
  });
}

}  // namespace

absl::Status LayerNormalizationKernel(const KernelContext& context) {
  return NormalizeKernel(context, /*centred=*/true);
}

absl::Status RmsNormalizationRule(InferContext& context) {
  RETURN_IF_ERROR(LayerNormalizationRule(context));
  return absl::OkStatus();
}

absl::Status RmsNormalizationKernel(const KernelContext& context) {
  return NormalizeKernel(context, /*centred=*/false);
}

absl::Status BatchNormalizationRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  if (context.attributes().Int("training_mode", 0) != 0) {
    return absl::UnimplementedError("training mode is not supported");
  }
  if (context.rank(0) < 2) return absl::InvalidArgumentError("the input has less than 2 dims");
  for (size_t i = 1; i < 5; ++i) {
    RETURN_IF_ERROR(CheckSameType(context, 0, i));
    if (context.shape(i) != SizeList{context.shape(0)[1]}) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " does not match dim 1"));
    }
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status BatchNormalizationKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const float epsilon = BatchNormalizationOp::From(context.node).epsilon;
  const int64_t channels = in.shape[1];
  const int64_t inner = NumElements(absl::Span<const int64_t>(in.shape).subspan(2));
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    using C = Compute<T>;
    const auto operand = [&](size_t i, int64_t c) { return C(context.inputs[i].as<T>()[c]); };
    for (int64_t line = 0; line < in.shape[0] * channels; ++line) {
      const int64_t c = line % channels;
      const C scale = operand(1, c) / std::sqrt(operand(4, c) + C(epsilon));
      const C shift = operand(2, c) - operand(3, c) * scale;
      for (int64_t i = line * inner; i < (line + 1) * inner; ++i) {
        context.outputs[0].as<T>()[i] = static_cast<T>(C(in.as<T>()[i]) * scale + shift);
      }
    }
  });
}

namespace {

constexpr uint32_t kFloat32Only = TypeBit(DType::kFloat32);

// Computes normalised = norm(x + skip + bias); the sum goes to `sum` where that is wanted.
absl::Status AddAndNormalize(const KernelContext& context, int gamma, int beta, int bias,
                             size_t sum_output, double epsilon, bool centred) {
  const TensorView& x = context.inputs[0];
  const TensorView& skip = context.inputs[1];
  const int64_t size = x.shape.back();
  const int64_t rows = size == 0 ? 0 : x.num_elements() / size;
  const auto pointer = [&](int i) {
    return i >= 0 && HasInput(context, i) ? context.inputs[i].as<float>() : nullptr;
  };
  std::vector<float> sum(x.num_elements());
  BroadcastApply(x.shape, sum.data(), x.as<float>(), x.shape, skip.as<float>(), skip.shape,
                 [](float a, float b) { return a + b; });
  if (const float* values = pointer(bias); values != nullptr) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i % size];
  }
  for (int64_t row = 0; row < rows; ++row) {
    NormalizeLine(sum.data() + row * size, context.outputs[0].as<float>() + row * size, size,
                  epsilon, pointer(gamma), pointer(beta), centred);
  }
  if (HasOutput(context, sum_output)) {
    std::copy(sum.begin(), sum.end(), context.outputs[sum_output].as<float>());
  }
  return absl::OkStatus();
}

absl::Status AddNormRule(InferContext& context, size_t sum_output) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloat32Only));
  if (context.rank(0) == 0) return absl::InvalidArgumentError("a scalar cannot be normalised");
  RETURN_IF_ERROR(CheckSameType(context, 0, 1));
  ASSIGN_OR_RETURN(const SizeList sum, BroadcastShapes(context.shape(0), context.shape(1)));
  if (sum != context.shape(0)) {
    return absl::InvalidArgumentError("input 1 does not broadcast to input 0");
  }
  for (size_t i = 2; i < context.num_inputs(); ++i) {
    if (!context.has_input(i)) continue;
    RETURN_IF_ERROR(CheckSameType(context, 0, i));
    if (context.shape(i) != SizeList{context.shape(0).back()}) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " does not match the last dim"));
    }
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  context.SetOutput(sum_output, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

}  // namespace

absl::Status AddLayerNormRule(InferContext& context) {
  RETURN_IF_ERROR(AddNormRule(context, 1));
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttribute(context.node(), "axis", -1, context.rank(0)));
  if (axis != context.rank(0) - 1) return absl::InvalidArgumentError("the axis is not the last");
  return absl::OkStatus();
}
absl::Status AddLayerNormKernel(const KernelContext& context) {
  return AddAndNormalize(context, 2, 3, -1, 1, AddLayerNormOp::From(context.node).epsilon, true);
}

absl::Status SkipLayerNormRule(InferContext& context) { return AddNormRule(context, 3); }
absl::Status SkipLayerNormKernel(const KernelContext& context) {
  return AddAndNormalize(context, 2, 3, 4, 3, SkipLayerNormOp::From(context.node).epsilon, true);
}
absl::Status SkipSimplifiedLayerNormRule(InferContext& context) { return AddNormRule(context, 3); }
absl::Status SkipSimplifiedLayerNormKernel(const KernelContext& context) {
  return AddAndNormalize(context, 2, -1, 3, 3,
                         SkipSimplifiedLayerNormOp::From(context.node).epsilon, false);
}

}  // namespace reprise::ops

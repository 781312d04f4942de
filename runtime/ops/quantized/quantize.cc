#include "runtime/ops/quantized/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/floats.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/quantized/granularity.h"

namespace reprise::ops {
namespace {

using QuantizedList = TypeList<int8_t, uint8_t, int16_t, uint16_t>;
using DequantizedList = TypeList<int8_t, uint8_t, int16_t, uint16_t, int32_t>;
constexpr uint32_t kQuantized = TypeBit(DType::kInt8) | TypeBit(DType::kUInt8) |
                                TypeBit(DType::kInt16) | TypeBit(DType::kUInt16);
constexpr uint32_t kScales =
    TypeBit(DType::kFloat32) | TypeBit(DType::kFloat16) | TypeBit(DType::kBFloat16);

// Quantises as QuantizeLinear does: halves to even, then saturated.
template <typename T>
T Quantize(float x, float scale, int64_t zero_point) {
  const double value = std::nearbyint(x / scale) + static_cast<double>(zero_point);
  // ONNX leaves open how NaN is quantised; onnxruntime has the least.
  if (!(value == value)) return std::numeric_limits<T>::min();
  return static_cast<T>(
      std::clamp<double>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

}  // namespace

absl::Status DequantizeLinearRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kQuantized | TypeBit(DType::kInt32)));
  RETURN_IF_ERROR(CheckType(context, 1, kScales));
  RETURN_IF_ERROR(CheckGranularity(context.node(), context.shape(0), context.shape(1)));
  if (context.has_input(2)) {
    RETURN_IF_ERROR(CheckSameType(context, 0, 2));
    if (NumElements(context.shape(2)) != NumElements(context.shape(1))) {
      return absl::InvalidArgumentError("scale and zero point differ in shape");
    }
  }
  context.SetOutput(0, context.dtype(1), context.shape(0));
  return absl::OkStatus();
}

// How the elements of input 0 are quantised, by inputs 1 and 2.
struct Quantisation {
  Granularity granularity;
  std::vector<float> scales;
  std::vector<int64_t> points;  // zero points, as many as scales

  static absl::StatusOr<Quantisation> Of(const KernelContext& context) {
    ASSIGN_OR_RETURN(Granularity granularity,
                     GranularityOf(context.node, context.inputs[0].shape, context.inputs[1].shape));
    Quantisation made = {granularity, FloatsOf(context.inputs[1]), Int64sOf(context, 2)};
    made.points.resize(made.scales.size(), 0);
    return made;
  }
};

absl::Status DequantizeLinearKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(const Quantisation quantisation, Quantisation::Of(context));
  const Granularity& granularity = quantisation.granularity;
  const std::vector<float>& scales = quantisation.scales;
  const std::vector<int64_t>& points = quantisation.points;
  return Dispatch(DequantizedList{}, in.dtype, [&]<typename T>() {
    (void)Dispatch(FloatList{}, context.outputs[0].dtype, [&]<typename F>() {
      const T* x = in.as<T>();
      F* y = context.outputs[0].as<F>();
      const int64_t count = in.num_elements();
      if (scales.size() == 1) {
        const int64_t point = points[0];
        const float scale = scales[0];
        for (int64_t i = 0; i < count; ++i)
          y[i] = static_cast<F>(float(int64_t(x[i]) - point) * scale);
        return;
      }
      for (int64_t i = 0; i < count; ++i) {
        const int64_t s = granularity.ScaleOf(i);
        y[i] = static_cast<F>(float(int64_t(x[i]) - points[s]) * scales[s]);
      }
    });
  });
}

absl::StatusOr<DType> QuantizedTypeOf(const Node& node, DType zero_point) {
  if (zero_point != DType::kUndefined) return zero_point;
  const int64_t number = node.attributes.Int("output_dtype", 0);
  if (number == 0) return DType::kUInt8;
  return DTypeFromOnnx(number);
}

absl::Status QuantizeLinearRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kScales | TypeBit(DType::kInt32)));
  RETURN_IF_ERROR(CheckType(context, 1, kScales | TypeBit(DType::kInt32)));
  RETURN_IF_ERROR(CheckGranularity(context.node(), context.shape(0), context.shape(1)));
  if (context.has_input(2)) {
    RETURN_IF_ERROR(CheckType(context, 2, kQuantized));
    if (NumElements(context.shape(2)) != NumElements(context.shape(1))) {
      return absl::InvalidArgumentError("scale and zero point differ in shape");
    }
  }
  ASSIGN_OR_RETURN(
      const DType dtype,
      QuantizedTypeOf(context.node(), context.has_input(2) ? context.dtype(2) : DType::kUndefined));
  if ((TypeBit(dtype) & kQuantized) == 0) {
    return absl::UnimplementedError(absl::StrCat("cannot quantise to ", DTypeName(dtype)));
  }
  context.SetOutput(0, dtype, context.shape(0));
  return absl::OkStatus();
}

absl::Status QuantizeLinearKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(const Quantisation quantisation, Quantisation::Of(context));
  const Granularity& granularity = quantisation.granularity;
  const std::vector<float>& scales = quantisation.scales;
  const std::vector<int64_t>& points = quantisation.points;
  return Dispatch(TypeList<float, Half, BFloat16, int32_t>{}, in.dtype, [&]<typename F>() {
    (void)Dispatch(QuantizedList{}, context.outputs[0].dtype, [&]<typename T>() {
      const int64_t count = in.num_elements();
      for (int64_t i = 0; i < count; ++i) {
        const int64_t s = scales.size() == 1 ? 0 : granularity.ScaleOf(i);
        context.outputs[0].as<T>()[i] =
            Quantize<T>(static_cast<float>(in.as<F>()[i]), scales[s], points[s]);
      }
    });
  });
}

absl::Status FakeQuantizeRule(InferContext& context) {
  for (size_t i : {0, 1}) RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kFloat32)));
  RETURN_IF_ERROR(QuantizeLinearRule(context));
  context.SetOutput(0, DType::kFloat32, context.shape(0));
  return absl::OkStatus();
}

absl::Status FakeQuantizeKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(const Quantisation quantisation, Quantisation::Of(context));
  const Granularity& granularity = quantisation.granularity;
  const std::vector<float>& scales = quantisation.scales;
  const std::vector<int64_t>& points = quantisation.points;
  ASSIGN_OR_RETURN(const DType dtype,
                   QuantizedTypeOf(context.node, HasInput(context, 2) ? context.inputs[2].dtype
                                                                      : DType::kUndefined));
  return Dispatch(QuantizedList{}, dtype, [&]<typename T>() {
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      const int64_t s = scales.size() == 1 ? 0 : granularity.ScaleOf(i);
      const T steps = Quantize<T>(in.as<float>()[i], scales[s], points[s]);
      context.outputs[0].as<float>()[i] = float(int64_t(steps) - points[s]) * scales[s];
    }
  });
}

absl::Status DynamicQuantizeLinearRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  context.SetOutput(0, DType::kUInt8, context.shape(0));
  context.SetOutput(1, DType::kFloat32, {});
  context.SetOutput(2, DType::kUInt8, {});
  return absl::OkStatus();
}

DynamicScale DynamicScaleOf(const float* x, int64_t count) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  return DynamicScaleOfRange(low, high);
}

DynamicScale DynamicScaleOfRange(float low, float high) {
  const float scale = high == low ? 1.0f : (high - low) / 255.0f;
  const float point = std::nearbyint(0 - low / scale);
  // NaN where the range is infinite, or below the range that 255 steps can divide: ONNX leaves the
  // result open, and onnxruntime has the largest.
  if (!(point == point)) return {scale, 255};
  return {scale, static_cast<uint8_t>(std::clamp(point, 0.0f, 255.0f))};
}

void QuantizeBytes(const float* x, int64_t count, const DynamicScale& scale, uint8_t* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = Quantize<uint8_t>(x[i], scale.scale, scale.zero_point);
}

void QuantizeAll(const float* x, float scale, int64_t zero_point, const MutableTensorView& y) {
  (void)Dispatch(TypeList<int8_t, uint8_t>{}, y.dtype, [&]<typename T>() {
    for (int64_t i = 0; i < y.num_elements(); ++i) {
      y.as<T>()[i] = Quantize<T>(x[i], scale, zero_point);
    }
  });
}

absl::Status DynamicQuantizeLinearKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const DynamicScale scale = DynamicScaleOf(in.as<float>(), in.num_elements());
  if (HasOutput(context, 0)) {
    QuantizeBytes(in.as<float>(), in.num_elements(), scale, context.outputs[0].as<uint8_t>());
  }
  if (HasOutput(context, 1)) *context.outputs[1].as<float>() = scale.scale;
  if (HasOutput(context, 2)) *context.outputs[2].as<uint8_t>() = scale.zero_point;
  return absl::OkStatus();
}

// QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero).
absl::Status QLinearMatMulRule(InferContext& context) {
  constexpr uint32_t kBytes = TypeBit(DType::kInt8) | TypeBit(DType::kUInt8);
  for (size_t i : {0, 3, 7}) RETURN_IF_ERROR(CheckType(context, i, kBytes));
  for (size_t i : {1, 4, 6}) RETURN_IF_ERROR(CheckType(context, i, kScales));
  for (size_t i : {1, 2, 6, 7}) {
    if (NumElements(context.shape(i)) != 1) {
      return absl::UnimplementedError(
          absl::StrCat("input ", i, " is not a scalar: scales per row are not supported"));
    }
  }
  ASSIGN_OR_RETURN(SizeList shape, MatMulShape(context.shape(0), context.shape(3)));
  const Size columns = context.shape(3).back();
  for (size_t i : {4, 5}) {
    const Size count = NumElements(context.shape(i));
    if (count != 1 && (count != columns || context.rank(3) < 2)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has ", count, " elements for ", columns, " columns"));
    }
  }
  context.SetOutput(0, context.dtype(7), std::move(shape));
  return absl::OkStatus();
}

absl::Status QLinearMatMulKernel(const KernelContext& context) {
  const auto& inputs = context.inputs;
  const TensorView products[4] = {inputs[0], inputs[3], inputs[2], inputs[5]};
  const MutableTensorView& out = context.outputs[0];
  std::vector<int32_t> sums(out.num_elements());
  const MutableTensorView accumulated[1] = {{DType::kInt32, out.shape, sums.data()}};
  RETURN_IF_ERROR(MatMulIntegerKernel({context.node, products, accumulated, context.errors}));
  const float a_scale = FloatsOf(inputs[1])[0];
  const std::vector<float> b_scales = FloatsOf(inputs[4]);
  const float y_scale = FloatsOf(inputs[6])[0];
  const int64_t y_point = Int64sOf(context, 7)[0];
  return Dispatch(TypeList<int8_t, uint8_t>{}, out.dtype, [&]<typename T>() {
    for (size_t i = 0; i < sums.size(); ++i) {
      const float scale = a_scale * b_scales[b_scales.size() == 1 ? 0 : i % b_scales.size()];
      out.as<T>()[i] = Quantize<T>(static_cast<float>(sums[i]) * scale, y_scale, y_point);
    }
  });
}

}  // namespace reprise::ops

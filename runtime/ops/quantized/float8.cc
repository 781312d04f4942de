#include "runtime/ops/quantized/float8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/quantized/granularity.h"

namespace reprise::ops {
namespace {

constexpr uint8_t kSign = 0x80;

// The layout of a form: bits of the fraction, the bias of an exponent, and the bits of its largest
// number, of infinity (0: there is none) and of NaN.
struct Layout {
  absl::string_view name;
  int fraction, bias;
  uint8_t largest, infinity, nan;
  bool signed_zero;
};

constexpr std::array<Layout, 4> kLayouts = {{
    {"float8e4m3fn", 3, 7, 0x7e, 0, 0x7f, true},
    {"float8e4m3fnuz", 3, 8, 0x7f, 0, 0x80, false},
    {"float8e5m2", 2, 15, 0x7b, 0x7c, 0x7f, true},
    {"float8e5m2fnuz", 2, 16, 0x7f, 0, 0x80, false},
}};

const Layout& LayoutOf(Float8 form) {
  return kLayouts[static_cast<int64_t>(form) - static_cast<int64_t>(Float8::kE4M3FN)];
}

std::array<float, 256> TableOf(Float8 form) {
  std::array<float, 256> table;
  for (int i = 0; i < 256; ++i) table[i] = FromFloat8(form, static_cast<uint8_t>(i));
  return table;
}

absl::StatusOr<Float8> FormOf(const Node& node) {
  const int64_t form = node.attributes.Int("form", 0);
  if (IsFloat8(form)) return static_cast<Float8>(form);
  return absl::InvalidArgumentError(absl::StrCat("dtype ", form, " is not a float of eight bits"));
}

absl::Status CheckScale(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 1, TypeBit(DType::kFloat32)));
  return CheckGranularity(context.node(), context.shape(0), context.shape(1));
}

// Makes output 0 `dtype` in the shape of input 0, which is `from`.
absl::Status Converted(InferContext& context, DType from, DType dtype) {
  RETURN_IF_ERROR(FormOf(context.node()).status());
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(from)));
  context.SetOutput(0, dtype, context.shape(0));
  return absl::OkStatus();
}

}  // namespace

absl::string_view Float8Name(int64_t onnx_number) {
  return LayoutOf(static_cast<Float8>(onnx_number)).name;
}

float FromFloat8(Float8 form, uint8_t bits) {
  const Layout& layout = LayoutOf(form);
  const uint8_t magnitude = bits & ~kSign;
  const bool is_nan = layout.signed_zero ? magnitude > std::max(layout.largest, layout.infinity)
                                         : bits == layout.nan;
  if (is_nan) return std::numeric_limits<float>::quiet_NaN();
  const float sign = (bits & kSign) != 0 ? -1.0f : 1.0f;
  if (layout.infinity != 0 && magnitude == layout.infinity) {
    return sign * std::numeric_limits<float>::infinity();
  }
  const int exponent = magnitude >> layout.fraction;
  const int fraction = magnitude & ((1 << layout.fraction) - 1);
  const int whole = exponent == 0 ? fraction : fraction + (1 << layout.fraction);
  return sign * std::ldexp(static_cast<float>(whole),
                           std::max(exponent, 1) - layout.bias - layout.fraction);
}

uint8_t ToFloat8(Float8 form, float value, bool saturate) {
  const Layout& layout = LayoutOf(form);
  if (std::isnan(value)) return layout.nan;
  const uint8_t sign = std::signbit(value) ? kSign : 0;
  const uint8_t beyond = saturate               ? layout.largest | sign
                         : layout.infinity != 0 ? layout.infinity | sign
                                                : layout.nan | (layout.signed_zero ? sign : 0);
  if (std::isinf(value)) return beyond;
  const float size = std::abs(value);
  // The size is counted in steps of the binade that it lies in, or of the lowest one.
  int exponent = 0;
  std::frexp(size, &exponent);
  const int least = 1 - layout.bias;
  exponent = size == 0 ? least : std::max(exponent - 1, least);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, layout.fraction - exponent)));
  // Numbers of a binade follow the numbers of the one before, so that a carry is right as it is.
  const int bits = steps + ((exponent - least) << layout.fraction);
  if (bits > layout.largest) return beyond;
  if (bits == 0 && !layout.signed_zero) return 0;
  return static_cast<uint8_t>(bits) | sign;
}

absl::Status FromFloat8Rule(InferContext& context) {
  return Converted(context, DType::kUInt8, DType::kFloat32);
}

absl::Status FromFloat8Kernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const Float8 form, FormOf(context.node));
  const std::array<float, 256> table = TableOf(form);
  const TensorView& in = context.inputs[0];
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    context.outputs[0].as<float>()[i] = table[in.as<uint8_t>()[i]];
  }
  return absl::OkStatus();
}

absl::Status ToFloat8Rule(InferContext& context) {
  return Converted(context, DType::kFloat32, DType::kUInt8);
}

absl::Status ToFloat8Kernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const Float8 form, FormOf(context.node));
  const bool saturate = context.node.attributes.Int("saturate", 1) != 0;
  const TensorView& in = context.inputs[0];
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    context.outputs[0].as<uint8_t>()[i] = ToFloat8(form, in.as<float>()[i], saturate);
  }
  return absl::OkStatus();
}

absl::Status DequantizeFloat8Rule(InferContext& context) {
  RETURN_IF_ERROR(CheckScale(context));
  return Converted(context, DType::kUInt8, DType::kFloat32);
}

absl::Status DequantizeFloat8Kernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const Float8 form, FormOf(context.node));
  const std::array<float, 256> table = TableOf(form);
  const TensorView &in = context.inputs[0], &scale = context.inputs[1];
  ASSIGN_OR_RETURN(const Granularity granularity,
                   GranularityOf(context.node, in.shape, scale.shape));
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    context.outputs[0].as<float>()[i] =
        table[in.as<uint8_t>()[i]] * scale.as<float>()[granularity.ScaleOf(i)];
  }
  return absl::OkStatus();
}

absl::Status QuantizeFloat8Rule(InferContext& context) {
  RETURN_IF_ERROR(CheckScale(context));
  return Converted(context, DType::kFloat32, DType::kUInt8);
}

absl::Status QuantizeFloat8Kernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const Float8 form, FormOf(context.node));
  const bool saturate = context.node.attributes.Int("saturate", 1) != 0;
  const TensorView &in = context.inputs[0], &scale = context.inputs[1];
  ASSIGN_OR_RETURN(const Granularity granularity,
                   GranularityOf(context.node, in.shape, scale.shape));
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    const float over = in.as<float>()[i] / scale.as<float>()[granularity.ScaleOf(i)];
    context.outputs[0].as<uint8_t>()[i] = ToFloat8(form, over, saturate);
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops

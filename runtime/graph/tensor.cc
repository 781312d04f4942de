#include "runtime/graph/tensor.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "runtime/base/shared_bytes.h"

namespace reprise {
namespace {

template <typename To, typename From>
std::vector<To> Convert(absl::Span<const From> values) {
  return std::vector<To>(values.begin(), values.end());
}

}  // namespace

Tensor Tensor::Make(DType dtype, Shape shape, const std::function<void(void*)>& fill) {
  std::shared_ptr<void> data = MakeSharedBytes(NumElements(shape) * DTypeSize(dtype));
  fill(data.get());
  return Tensor(dtype, std::move(shape), std::move(data));
}

Tensor Tensor::Aligned() const {
  if (aligned()) return *this;
  return Make(dtype_, shape_, [&](void* data) { std::memcpy(data, data_.get(), bytes()); });
}

absl::StatusOr<std::vector<int64_t>> Tensor::ToInt64s() const {
  switch (dtype_) {
    case DType::kBool:
    case DType::kUInt8:
      return Convert<int64_t>(span<uint8_t>());
    case DType::kInt8:
      return Convert<int64_t>(span<int8_t>());
    case DType::kInt16:
      return Convert<int64_t>(span<int16_t>());
    case DType::kUInt16:
      return Convert<int64_t>(span<uint16_t>());
    case DType::kInt32:
      return Convert<int64_t>(span<int32_t>());
    case DType::kUInt32:
      return Convert<int64_t>(span<uint32_t>());
    case DType::kInt64:
      return Convert<int64_t>(span<int64_t>());
    case DType::kUInt64:
      return Convert<int64_t>(span<uint64_t>());
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("expected integers, got dtype ", DTypeName(dtype_)));
  }
}

std::vector<double> Tensor::ToDoubles() const {
  switch (dtype_) {
    case DType::kFloat32:
      return Convert<double>(span<float>());
    case DType::kFloat64:
      return Convert<double>(span<double>());
    case DType::kUInt64:
      return Convert<double>(span<uint64_t>());
    case DType::kFloat16:
    case DType::kBFloat16: {
      std::vector<double> result;
      for (uint16_t bits : span<uint16_t>()) {
        result.push_back(dtype_ == DType::kFloat16 ? HalfToFloat(bits) : BFloat16ToFloat(bits));
      }
      return result;
    }
    case DType::kUndefined:
      return {};
    default: {
      const std::vector<int64_t> values = *ToInt64s();
      return std::vector<double>(values.begin(), values.end());
    }
  }
}

Tensor Tensor::Reshaped(Shape shape) const {
  REPRISE_CHECK(NumElements(shape) == num_elements());
  return Tensor(dtype_, std::move(shape), data_);
}

bool operator==(const Tensor& a, const Tensor& b) {
  if (a.dtype_ != b.dtype_ || a.shape_ != b.shape_) return false;
  return a.data_ == b.data_ || a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

float HalfToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 0x1F;
  uint32_t mantissa = half & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {
    if (mantissa == 0) return std::bit_cast<float>(sign);
    exponent = 1;  // Subnormal: shift until the leading one is implicit.
    while ((mantissa & 0x400) == 0) {
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= 0x3FF;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7E00;   // NaN
  if (magnitude >= 0x477FF000) return sign | 0x7C00;  // Rounds to infinity.
  if (magnitude < 0x33000001) return sign;            // Rounds to zero.
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  uint32_t mantissa = (magnitude & 0x7FFFFF) | 0x800000;
  const int shift = exponent < -14 ? 13 + (-14 - exponent) : 13;
  const uint32_t half_exponent = exponent < -14 ? 0 : static_cast<uint32_t>(exponent + 14);
  const uint32_t rest = mantissa & ((1u << shift) - 1);
  const uint32_t tie = 1u << (shift - 1);
  mantissa >>= shift;
  if (rest > tie || (rest == tie && (mantissa & 1))) ++mantissa;
  return sign | static_cast<uint16_t>((half_exponent << 10) + mantissa);
}

float BFloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t FloatToBFloat16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return (bits >> 16) | 0x40;  // NaN stays NaN.
  bits += 0x7FFF + ((bits >> 16) & 1);
  return bits >> 16;
}

}  // namespace reprise

// Typed loops: the C++ element types of dtypes, and dispatch from a dtype to a template.
//
// f16 and bf16 are storage: arithmetic on them happens in float (`Compute<T>`).
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/dtype.h"
#include "runtime/graph/tensor.h"

namespace reprise::ops {

struct Half {
  uint16_t bits;
  Half() = default;
  explicit Half(float value) : bits(FloatToHalf(value)) {}
  operator float() const { return HalfToFloat(bits); }
};

struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(FloatToBFloat16(value)) {}
  operator float() const { return BFloat16ToFloat(bits); }
};

// A byte of a bool tensor; any value but 0 is true, as sent by clients.
struct Bool {
  uint8_t bits;
  Bool() = default;
  explicit Bool(bool value) : bits(value) {}
  operator bool() const { return bits != 0; }
};

// The type that arithmetic on T happens in.
template <typename T>
using Compute = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                                   std::conditional_t<std::is_same_v<T, Bool>, bool, T>>;

template <typename T>
inline constexpr DType kDTypeOf = DType::kUndefined;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kFloat64;
template <>
inline constexpr DType kDTypeOf<Half> = DType::kFloat16;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::kBFloat16;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::kInt8;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kUInt8;
template <>
inline constexpr DType kDTypeOf<int16_t> = DType::kInt16;
template <>
inline constexpr DType kDTypeOf<uint16_t> = DType::kUInt16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kInt32;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::kUInt32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kInt64;
template <>
inline constexpr DType kDTypeOf<uint64_t> = DType::kUInt64;
template <>
inline constexpr DType kDTypeOf<Bool> = DType::kBool;

template <typename... Ts>
struct TypeList {};

using FloatList = TypeList<float, double, Half, BFloat16>;
using IntList = TypeList<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>;
using NumericList = TypeList<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t,
                             int32_t, uint32_t, int64_t, uint64_t>;
using AllList = TypeList<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t,
                         uint32_t, int64_t, uint64_t, Bool>;
using IndexList = TypeList<int32_t, int64_t>;

// Calls f.template operator()<T>() with the T of `Ts` that `dtype` names.
template <typename... Ts, typename F>
absl::Status Dispatch(TypeList<Ts...>, DType dtype, F&& f) {
  const bool found = ((dtype == kDTypeOf<Ts> ? (f.template operator()<Ts>(), true) : false) || ...);
  if (found) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("no kernel for dtype ", DTypeName(dtype)));
}

// Calls f for code that moves elements only: T is an unsigned integer of the element's size.
template <typename F>
void DispatchSize(DType dtype, F&& f) {
  switch (DTypeSize(dtype)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return;
  }
}

// Returns the integer that NaN becomes: the least number of signed types of 32 and 64 bits, as on
// x86 and in numpy, so that a missing category is not taken for category 0.
template <typename To>
inline constexpr To kOfNan = std::is_signed_v<To> && sizeof(To) >= 4
                                 ? std::numeric_limits<To>::min()
                                 : To(0);

// Converts a result that was computed in another type; values for which C++ leaves it undefined
// saturate, or become kOfNan. CastTo is ONNX's Cast.
template <typename To, typename From>
To ConvertTo(From from) {
  if constexpr (std::is_same_v<To, Bool>) {
    return Bool(static_cast<Compute<From>>(from) != Compute<From>(0));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(static_cast<Compute<From>>(from)));
  } else {
    const Compute<From> value = from;
    if constexpr (std::is_integral_v<To> && std::is_floating_point_v<Compute<From>>) {
      if (!(value == value)) return kOfNan<To>;
      // The bounds as doubles: max() of a 64-bit type rounds up, hence >=.
      if (value >= static_cast<double>(std::numeric_limits<To>::max())) {
        return std::numeric_limits<To>::max();
      }
      if (value <= static_cast<double>(std::numeric_limits<To>::min())) {
        return std::numeric_limits<To>::min();
      }
    }
    return static_cast<To>(value);
  }
}

// Returns `x` without its fraction as an integer; a value that To cannot hold becomes its least
// number.
template <typename To, typename F>
To Truncated(F x) {
  static_assert(std::is_signed_v<To> && sizeof(To) >= 4);
  constexpr F kEnd = static_cast<F>(std::numeric_limits<To>::max() / 2 + 1) * 2;
  const bool inside = x >= -kEnd && x < kEnd;
  // Both ways are computed, so that loops are vectorised.
  const To integer = static_cast<To>(inside ? x : F(0));
  return inside ? integer : std::numeric_limits<To>::min();
}

// Converts as ONNX's Cast does. Values that an integer cannot hold, which ONNX leaves open, become
// the same as with onnxruntime on x86: the least number of the signed types of 32 and 64 bits, and
// the low bits of such a number in other types.
template <typename To, typename From>
To CastTo(From from) {
  using C = Compute<From>;
  if constexpr (std::is_integral_v<To> && std::is_floating_point_v<C>) {
    const C x = from;
    using Signed = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
    using Unsigned = std::make_unsigned_t<Signed>;
    if constexpr (std::is_signed_v<To> || sizeof(To) < 4) {
      return static_cast<To>(Truncated<Signed>(x));
    } else {
      constexpr C kHalf = static_cast<C>(Unsigned(1) << (8 * sizeof(To) - 1));
      const bool low = !(x >= kHalf);
      const auto bits = static_cast<Unsigned>(Truncated<Signed>(low ? x : x - kHalf));
      return low ? bits : bits ^ (Unsigned(1) << (8 * sizeof(To) - 1));
    }
  } else {
    return ConvertTo<To>(from);
  }
}

}  // namespace reprise::ops

// Precision: how much accuracy a model's answers may lose for speed.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace reprise {

enum class Precision : uint8_t {
  kExact,  // float32 arithmetic
  // Products with weights round both operands to bfloat16 and sum in float32, and attention may do
  // so with all it multiplies; all else is as in kExact. Rounded numbers are off by up to 2^-9.
  kBf16,
  // Products with weights round the rows of their first operand to bytes, multiply bytes and sum
  // in int32 (ops/products/round_rows.h); weights of floats become bytes too. Attention as kBf16.
  kInt8,
};
inline constexpr absl::string_view kPrecisionNames[] = {"exact", "bf16", "int8"};
inline constexpr Precision kPrecisions[] = {Precision::kExact, Precision::kBf16, Precision::kInt8};

inline absl::string_view PrecisionName(Precision precision) {
  return kPrecisionNames[static_cast<size_t>(precision)];
}

inline std::optional<Precision> ParsePrecision(absl::string_view name) {
  for (const Precision precision : kPrecisions) {
    if (name == PrecisionName(precision)) return precision;
  }
  return std::nullopt;
}

// The attribute of a product that rounds, and of an attention that may: {"precision": "bf16"}.
inline constexpr char kPrecisionAttribute[] = "precision";
// The elements of a row that are rounded together by a product with kInt8 whose weights have
// blocks. Absent: a whole row is.
inline constexpr char kRoundedBlockAttribute[] = "rounded_block";

// The form in which the floats of weights of products are kept; weights that a model stores in
// fewer bits stay as they are.
enum class WeightBits : uint8_t {
  kStored,  // as they are; int8 where the precision of their product is kInt8
  kInt8,    // bytes with a factor for each column
  kInt4,    // four bits with a factor for each block of a column
};
inline constexpr absl::string_view kWeightBitsNames[] = {"stored", "int8", "int4"};

inline absl::string_view WeightBitsName(WeightBits form) {
  return kWeightBitsNames[static_cast<size_t>(form)];
}

inline std::optional<WeightBits> ParseWeightBits(absl::string_view name) {
  for (const WeightBits form : {WeightBits::kStored, WeightBits::kInt8, WeightBits::kInt4}) {
    if (name == WeightBitsName(form)) return form;
  }
  return std::nullopt;
}

}  // namespace reprise

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
};
inline constexpr absl::string_view kPrecisionNames[] = {"exact", "bf16"};

inline absl::string_view PrecisionName(Precision precision) {
  return kPrecisionNames[static_cast<size_t>(precision)];
}

inline std::optional<Precision> ParsePrecision(absl::string_view name) {
  for (const Precision precision : {Precision::kExact, Precision::kBf16}) {
    if (name == PrecisionName(precision)) return precision;
  }
  return std::nullopt;
}

// The attribute of a product that rounds, and of an attention that may: {"precision": "bf16"}.
inline constexpr char kPrecisionAttribute[] = "precision";

}  // namespace reprise

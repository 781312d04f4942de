// Precision: what a model's answers may lose for speed.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace reprise {

enum class Precision : uint8_t {
  kExact,  // float32 arithmetic
  // Products with weights round both of their operands to bfloat16, to the nearest, and sum in
  // float32; everything else is as in kExact. A rounded operand is off by up to 2^-9 of itself.
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

// The attribute of a product that rounds its operands: {"precision": "bf16"}. Absent: exact.
inline constexpr char kPrecisionAttribute[] = "precision";

}  // namespace reprise

// DType: element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace reprise {

enum class DType : uint8_t {
  kUndefined,
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
  kBool,
};

// Returns the bytes of one element; 0 for kUndefined.
size_t DTypeSize(DType dtype);

// Returns "f32", "f64", "f16", "bf16", "i8", "u8", ..., "bool": the spelling of the graph text
// form.
absl::string_view DTypeName(DType dtype);
std::optional<DType> ParseDType(absl::string_view name);

bool IsFloating(DType dtype);  // f16, bf16, f32, f64
bool IsInteger(DType dtype);   // signed and unsigned, not bool
bool IsSigned(DType dtype);    // signed integers and floats

}  // namespace reprise

#include "runtime/graph/dtype.h"

#include <array>

namespace reprise {
namespace {

struct DTypeRow {
  absl::string_view name;
  size_t size;
};

// Indexed by DType.
constexpr std::array<DTypeRow, 14> kRows = {{{"undefined", 0},
                                             {"f32", 4},
                                             {"f64", 8},
                                             {"f16", 2},
                                             {"bf16", 2},
                                             {"i8", 1},
                                             {"u8", 1},
                                             {"i16", 2},
                                             {"u16", 2},
                                             {"i32", 4},
                                             {"u32", 4},
                                             {"i64", 8},
                                             {"u64", 8},
                                             {"bool", 1}}};

}  // namespace

size_t DTypeSize(DType dtype) { return kRows[static_cast<size_t>(dtype)].size; }

absl::string_view DTypeName(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

std::optional<DType> ParseDType(absl::string_view name) {
  for (size_t i = 1; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool IsFloating(DType dtype) { return dtype >= DType::kFloat32 && dtype <= DType::kBFloat16; }

bool IsInteger(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kUInt64; }

bool IsSigned(DType dtype) {
  return IsFloating(dtype) || dtype == DType::kInt8 || dtype == DType::kInt16 ||
         dtype == DType::kInt32 || dtype == DType::kInt64;
}

}  // namespace reprise

#include "runtime/ops/kit/onnx_types.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"

namespace reprise::ops {
namespace {

struct OnnxType {
  absl::string_view name;
  DType dtype;  // kUndefined: we lack it
};

// Indexed by TensorProto.DataType.
constexpr std::array<OnnxType, 24> kOnnxTypes = {{{"undefined", DType::kUndefined},
                                                  {"float", DType::kFloat32},
                                                  {"uint8", DType::kUInt8},
                                                  {"int8", DType::kInt8},
                                                  {"uint16", DType::kUInt16},
                                                  {"int16", DType::kInt16},
                                                  {"int32", DType::kInt32},
                                                  {"int64", DType::kInt64},
                                                  {"string", DType::kUndefined},
                                                  {"bool", DType::kBool},
                                                  {"float16", DType::kFloat16},
                                                  {"double", DType::kFloat64},
                                                  {"uint32", DType::kUInt32},
                                                  {"uint64", DType::kUInt64},
                                                  {"complex64", DType::kUndefined},
                                                  {"complex128", DType::kUndefined},
                                                  {"bfloat16", DType::kBFloat16},
                                                  {"float8e4m3fn", DType::kUndefined},
                                                  {"float8e4m3fnuz", DType::kUndefined},
                                                  {"float8e5m2", DType::kUndefined},
                                                  {"float8e5m2fnuz", DType::kUndefined},
                                                  {"uint4", DType::kUndefined},
                                                  {"int4", DType::kUndefined},
                                                  {"float4e2m1", DType::kUndefined}}};

}  // namespace

absl::StatusOr<DType> DTypeFromOnnx(int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(kOnnxTypes.size())) {
    return absl::InvalidArgumentError(absl::StrCat("there is no dtype number ", number));
  }
  const OnnxType& type = kOnnxTypes[number];
  if (type.dtype == DType::kUndefined) {
    return absl::UnimplementedError(absl::StrCat("dtype ", type.name, " is not supported"));
  }
  return type.dtype;
}

int64_t OnnxNumber(DType dtype) {
  REPRISE_CHECK(dtype != DType::kUndefined);
  const auto* it = std::find_if(kOnnxTypes.begin(), kOnnxTypes.end(),
                                [&](const OnnxType& type) { return type.dtype == dtype; });
  REPRISE_CHECK(it != kOnnxTypes.end());
  return it - kOnnxTypes.begin();
}

}  // namespace reprise::ops

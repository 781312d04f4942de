#include "client/tensor.h"

#include "absl/strings/str_join.h"

namespace reprise::client {

size_t ElementBytes(absl::string_view datatype) {
  if (datatype == "BOOL" || datatype == "INT8" || datatype == "UINT8") return 1;
  if (datatype == "INT16" || datatype == "UINT16" || datatype == "FP16" || datatype == "BF16") {
    return 2;
  }
  if (datatype == "INT32" || datatype == "UINT32" || datatype == "FP32") return 4;
  if (datatype == "INT64" || datatype == "UINT64" || datatype == "FP64") return 8;
  return 0;
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  return shape.empty() ? "scalar" : absl::StrJoin(shape, "x");
}

}  // namespace reprise::client

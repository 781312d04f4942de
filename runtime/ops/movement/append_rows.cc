#include "runtime/ops/movement/append_rows.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise::ops {

absl::Status AppendRowsRule(InferContext& context) {
  RETURN_IF_ERROR(CheckSameType(context, 0, 1));
  RETURN_IF_ERROR(CheckType(context, 2, TypeBit(DType::kInt64)));
  RETURN_IF_ERROR(CheckRank(context, 0, 4));
  const SizeList& past = context.shape(0);
  const SizeList& rows = context.shape(1);
  if (rows.size() != 4 || rows[0] != past[0] || rows[1] != past[1] || rows[3] != past[3]) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cache ", ShapeToString(past), " does not take rows ", ShapeToString(rows)));
  }
  if (context.shape(2) != SizeList{past[0]}) {
    return absl::InvalidArgumentError(absl::StrCat("where rows go has the shape ",
                                                   ShapeToString(context.shape(2)), ", not ",
                                                   ShapeToString(SizeList{past[0]})));
  }
  ASSIGN_OR_RETURN(const std::vector<Size> wanted, context.RequireSizes(3));
  if (wanted.size() != 1) return absl::InvalidArgumentError("the length is not one number");
  const Size length = std::max(past[2], wanted[0]);
  if (length < rows[2]) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cache of ", length, " rows has no room for ", rows[2]));
  }
  context.SetOutput(0, context.dtype(0), {past[0], past[1], length, past[3]});
  return absl::OkStatus();
}

absl::Status AppendRowsKernel(const KernelContext& context) {
  const Shape& past = context.inputs[0].shape;
  const Shape& rows = context.inputs[1].shape;
  const MutableTensorView& out = context.outputs[0];
  const int64_t row_bytes = past[3] * static_cast<int64_t>(DTypeSize(out.dtype));
  const auto* at = context.inputs[2].as<int64_t>();
  const auto* before = context.inputs[0].as<char>();
  const auto* added = context.inputs[1].as<char>();
  auto* to = out.as<char>();
  for (int64_t b = 0; b < past[0]; ++b) {
    const AppendedRows copied = AppendedRows::Of(at[b], past[2], rows[2], out.shape[2]);
    if (!copied.fits) {
      context.errors.Report(2, b, at[b], 0, std::min(past[2], out.shape[2] - rows[2]));
    }
    for (int64_t h = 0; h < past[1]; ++h, to += out.shape[2] * row_bytes) {
      const int64_t pair = b * past[1] + h;
      std::memset(to, 0, out.shape[2] * row_bytes);
      if (copied.past > 0) {
        std::memcpy(to, before + pair * past[2] * row_bytes, copied.past * row_bytes);
      }
      std::memcpy(to + copied.past * row_bytes, added + pair * rows[2] * row_bytes,
                  copied.added * row_bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops

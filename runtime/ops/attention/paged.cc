#include "runtime/ops/attention/paged.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/paged_op.h"

namespace reprise::ops {

std::optional<CacheDType> ParseCacheDType(absl::string_view name) {
  for (const CacheDType dtype : {CacheDType::kFloat32, CacheDType::kBFloat16, CacheDType::kInt8}) {
    if (name == CacheDTypeName(dtype)) return dtype;
  }
  return std::nullopt;
}

absl::string_view CacheDTypeName(CacheDType dtype) {
  return dtype == CacheDType::kFloat32 ? "f32" : dtype == CacheDType::kBFloat16 ? "bf16" : "int8";
}

absl::Status CachedRowsRule(InferContext& context) {
  const Attributes& attributes = context.attributes();
  if (context.pinned_shape(0).empty())
    return absl::InvalidArgumentError("its operand has no tokens");
  context.SetOutput(0, DType::kFloat32,
                    {context.pinned_shape(0)[0], attributes.Int("heads", 1),
                     attributes.Int("past", 1), attributes.Int("size", 1)});
  return absl::OkStatus();
}

absl::Status CachedRowsKernel(const KernelContext& context) {
  const MutableTensorView& out = context.outputs[0];
  std::memset(out.data, 0, NumElements(out.shape) * sizeof(float));
  return absl::OkStatus();
}

absl::Status PagedAttentionRule(InferContext& context) {
  for (size_t i = 0; i < 3; ++i) {
    RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kFloat32)));
    RETURN_IF_ERROR(CheckRank(context, i, i == 0 ? 3 : 2));
  }
  for (const size_t i : {3, 4}) {
    RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kInt64)));
    RETURN_IF_ERROR(CheckRank(context, i, 1));
  }
  const int64_t heads = context.attributes().Int("num_heads", 0);
  const int64_t kv_heads = context.attributes().Int("kv_heads", 0);
  const int64_t tokens = context.pinned_shape(0)[0], width = context.pinned_shape(0)[2];
  if (heads <= 0 || kv_heads <= 0 || heads % kv_heads != 0 || width % heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows of ", width, " are not ", heads, " heads over ", kv_heads, " of keys and values"));
  }
  const int64_t size_v = context.pinned_shape(2)[1] / kv_heads;
  if (context.pinned_shape(1) != Shape{tokens, kv_heads * (width / heads)} ||
      context.pinned_shape(2) != Shape{tokens, kv_heads * size_v} ||
      context.pinned_shape(0)[1] != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("queries ", ShapeToString(context.pinned_shape(0)), ", keys ",
                     ShapeToString(context.pinned_shape(1)), " and values ",
                     ShapeToString(context.pinned_shape(2)), " do not fit"));
  }
  RETURN_IF_ERROR(CheckSinks(context, PagedAttentionOp::kSinks, heads));
  constexpr auto kMost = static_cast<int64_t>(CacheDType::kInt8);
  if (const int64_t dtype = context.attributes().Int("cache_dtype", 0);
      dtype < 0 || dtype > kMost) {
    return absl::InvalidArgumentError(absl::StrCat("cache_dtype is ", dtype));
  }
  context.SetOutput(0, DType::kFloat32, {tokens, 1, heads * size_v});
  return absl::OkStatus();
}

absl::Status PagedCrossAttentionRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  RETURN_IF_ERROR(CheckRank(context, 0, 3));
  for (const size_t i : {1, 2}) {
    RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kInt64)));
    RETURN_IF_ERROR(CheckRank(context, i, 1));
  }
  const int64_t heads = context.attributes().Int("num_heads", 0);
  const int64_t kv_heads = context.attributes().Int("kv_heads", 0);
  const int64_t size_v = context.attributes().Int("v_size", 0);
  const int64_t tokens = context.pinned_shape(0)[0], width = context.pinned_shape(0)[2];
  if (heads <= 0 || kv_heads <= 0 || heads % kv_heads != 0 || width % heads != 0 || size_v <= 0 ||
      context.pinned_shape(0)[1] != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("queries ", ShapeToString(context.pinned_shape(0)), " are not ", heads,
                     " heads over ", kv_heads, " of keys and values"));
  }
  context.SetOutput(0, DType::kFloat32, {tokens, 1, heads * size_v});
  return absl::OkStatus();
}

absl::Status PagedAttentionKernel(const KernelContext&) {
  return absl::UnimplementedError("reads pages, which a reference kernel does not see");
}

}  // namespace reprise::ops

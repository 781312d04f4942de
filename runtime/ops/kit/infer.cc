#include "runtime/ops/kit/infer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {

absl::Status CheckType(const InferContext& context, size_t input, uint32_t types) {
  if ((TypeBit(context.dtype(input)) & types) != 0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("input ", input, " cannot be of dtype ", DTypeName(context.dtype(input))));
}

absl::Status CheckSameType(const InferContext& context, size_t a, size_t b) {
  if (context.dtype(a) == context.dtype(b)) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("inputs ", a, " and ", b, " are of dtypes ",
                                               DTypeName(context.dtype(a)), " and ",
                                               DTypeName(context.dtype(b))));
}

absl::Status CheckRank(const InferContext& context, size_t input, int64_t rank) {
  if (context.rank(input) == rank) return absl::OkStatus();
  return RankError(
      absl::StrCat("input ", input, " has rank ", context.rank(input), ", expected ", rank));
}

absl::StatusOr<int64_t> AxisAttribute(const Node& node, absl::string_view name, int64_t fallback,
                                      int64_t rank) {
  return NormalizeAxis(node.attributes.Int(name, fallback), rank);
}

absl::StatusOr<std::vector<int64_t>> NormalizeAxes(absl::Span<const int64_t> axes, int64_t rank) {
  std::vector<int64_t> result;
  for (int64_t axis : axes) {
    ASSIGN_OR_RETURN(const int64_t normal, NormalizeAxis(axis, rank));
    result.push_back(normal);
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    return absl::InvalidArgumentError("an axis is listed twice");
  }
  return result;
}

absl::Status CheckRange(absl::string_view what, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", value, ", outside [", low, ", ", high, "]"));
}

absl::StatusOr<SizeList> BroadcastInputs(const InferContext& context) {
  SizeList shape = context.shape(0);
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (!context.has_input(i)) continue;
    ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, context.shape(i)));
  }
  return shape;
}

absl::Status BroadcastRule(InferContext& context, uint32_t types, DType result) {
  RETURN_IF_ERROR(CheckType(context, 0, types));
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (!context.has_input(i)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " must not be left out"));
    }
    RETURN_IF_ERROR(CheckSameType(context, 0, i));
  }
  ASSIGN_OR_RETURN(SizeList shape, BroadcastInputs(context));
  context.SetOutput(0, result, std::move(shape));
  return absl::OkStatus();
}

int64_t CheckedValue(const KernelContext& context, int input, int64_t element, int64_t value,
                     int64_t low, int64_t high) {
  if (value >= low && value <= high) return value;
  context.errors.Report(input, element, value, low, high);
  return 0;
}

std::vector<int64_t> Int64sOf(const KernelContext& context, size_t i) {
  std::vector<int64_t> values;
  if (!HasInput(context, i)) return values;
  const TensorView& view = context.inputs[i];
  (void)Dispatch(AllList{}, view.dtype, [&]<typename T>() {
    const T* data = view.as<T>();
    for (int64_t k = 0; k < view.num_elements(); ++k) values.push_back(ConvertTo<int64_t>(data[k]));
  });
  return values;
}

}  // namespace reprise::ops

#include "runtime/ops/movement/select_item.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise::ops {

absl::StatusOr<size_t> SelectedInput(const Node& node, int64_t position) {
  const int64_t count = node.attributes.Int("count", 0);
  if (position < -count || position > node.attributes.Int("last", count - 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("position ", position, " lies outside a sequence of ", count, " tensors"));
  }
  const int64_t place = position < 0 ? position + count : position;
  const std::vector<int64_t> from = node.attributes.Ints("from");
  const auto item = static_cast<size_t>(
      std::count_if(from.begin(), from.end(), [&](int64_t first) { return first <= place; }));
  if (item + 1 >= node.inputs.size() || node.inputs[item + 1] == kNone) {
    return absl::InvalidArgumentError(absl::StrCat("there is no item ", item));
  }
  return item + 1;
}

absl::Status SelectItemRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kIndices));
  if (NumElements(context.shape(0)) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes one position, is given ", NumElements(context.shape(0))));
  }
  for (size_t i = 1; i < context.num_inputs(); ++i) RETURN_IF_ERROR(CheckSameType(context, 1, i));
  ASSIGN_OR_RETURN(const std::vector<int64_t> position, context.RequireInt64s(0));
  ASSIGN_OR_RETURN(const size_t item, SelectedInput(context.node(), position[0]));
  context.SetOutput(0, context.dtype(item), context.shape(item));
  return absl::OkStatus();
}

absl::Status SelectItemKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const size_t item, SelectedInput(context.node, Int64sOf(context, 0)[0]));
  const TensorView& from = context.inputs[item];
  if (from.bytes() > 0) std::memcpy(context.outputs[0].data, from.data, from.bytes());
  return absl::OkStatus();
}

}  // namespace reprise::ops

#include "runtime/ops/control/branch.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise::ops {

absl::Status IfRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kBools));
  if (context.num_inputs() % 2 == 0) {
    return absl::InvalidArgumentError("its branches do not have equally many results");
  }
  if (NumElements(context.shape(0)) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("its condition has ", NumElements(context.shape(0)), " elements"));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> condition, context.RequireInt64s(0));
  const size_t results = context.num_inputs() / 2;
  for (size_t i = 0; i < results; ++i) {
    const size_t taken = 1 + i + (condition[0] != 0 ? 0 : results);
    if (context.has_input(taken)) context.SetOutput(i, context.dtype(taken), context.shape(taken));
  }
  return absl::OkStatus();
}

absl::Status IfKernel(const KernelContext& context) {
  const size_t results = context.inputs.size() / 2;
  const bool condition = Int64sOf(context, 0)[0] != 0;
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    if (!HasOutput(context, i)) continue;
    const TensorView& taken = context.inputs[1 + i + (condition ? 0 : results)];
    const size_t bytes = NumElements(taken.shape) * DTypeSize(taken.dtype);
    if (bytes > 0) std::memcpy(context.outputs[i].data, taken.data, bytes);
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops

#include "runtime/ops/reduce/group_norm.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/reduce/channel_norm_op.h"

namespace reprise::ops {
namespace {

absl::Status ChannelNormRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  if (context.rank(0) < 3) {
    return RankError("its operand has no dims after batch and channel");
  }
  const Size channels = context.shape(0)[1];
  for (size_t i = 1; i < 3; ++i) {
    RETURN_IF_ERROR(CheckSameType(context, 0, i));
    if (context.shape(i) != SizeList{channels}) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is ",
                                                     ShapeToString(context.shape(i)),
                                                     ", the operand has ", channels, " channels"));
    }
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status Normalize(const KernelContext& context, int64_t groups) {
  const TensorView& in = context.inputs[0];
  const double epsilon = GroupNormalizationOp::From(context.node.attributes).epsilon;
  const int64_t channels = in.shape[1];
  const int64_t plane = NumElements(absl::Span<const int64_t>(in.shape).subspan(2));
  if (groups == 0) return absl::OkStatus();  // No channels either.
  const int64_t group_channels = channels / groups;
  const int64_t group_size = group_channels * plane;
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    using C = Compute<T>;
    for (int64_t at = 0; at < in.shape[0] * groups; ++at) {
      const T* x = in.as<T>() + at * group_size;
      T* y = context.outputs[0].as<T>() + at * group_size;
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < group_size; ++i) sum += static_cast<C>(x[i]);
      const double mean = sum / static_cast<double>(group_size);
      for (int64_t i = 0; i < group_size; ++i) {
        const double centred = static_cast<C>(x[i]) - mean;
        squares += centred * centred;
      }
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(group_size) + epsilon);
      for (int64_t i = 0; i < group_size; ++i) {
        const int64_t channel = at % groups * group_channels + i / plane;
        const C scale = context.inputs[1].as<T>()[channel];
        const C bias = context.inputs[2].as<T>()[channel];
        y[i] =
            static_cast<T>(static_cast<C>((static_cast<C>(x[i]) - mean) * inverse) * scale + bias);
      }
    }
  });
}

}  // namespace

absl::Status InstanceNormalizationRule(InferContext& context) { return ChannelNormRule(context); }

absl::Status InstanceNormalizationKernel(const KernelContext& context) {
  return Normalize(context, context.inputs[0].shape[1]);
}

absl::Status GroupNormalizationRule(InferContext& context) {
  RETURN_IF_ERROR(ChannelNormRule(context));
  const int64_t groups = GroupNormalizationOp::From(context.attributes()).num_groups;
  if (groups < 1 || context.shape(0)[1] % groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_groups ", groups, " does not divide ", context.shape(0)[1], " channels"));
  }
  return absl::OkStatus();
}

absl::Status GroupNormalizationKernel(const KernelContext& context) {
  return Normalize(context, GroupNormalizationOp::From(context.node.attributes).num_groups);
}

}  // namespace reprise::ops

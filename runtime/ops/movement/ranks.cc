#include "runtime/ops/movement/ranks.h"

#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/movement/ranks_op.h"

namespace reprise::ops {

absl::Status AllReduceRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  context.SetOutput(0, DType::kFloat32, context.shape(0));
  return absl::OkStatus();
}

absl::Status AllReduceKernel(const KernelContext& context) {
  const TensorView& x = context.inputs[0];
  const auto bytes = static_cast<size_t>(NumElements(x.shape)) * sizeof(float);
  if (bytes > 0) std::memcpy(context.outputs[0].data, x.data, bytes);
  return absl::OkStatus();
}

absl::Status AllGatherRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  const AllGatherOp op = AllGatherOp::From(context.attributes());
  Shape shape = context.pinned_shape(0);
  if (op.rank < 0 || op.rank >= static_cast<int64_t>(op.widths.size()) || shape.empty() ||
      shape.back() != op.widths[static_cast<size_t>(op.rank)]) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows ", ShapeToString(shape), " are not of rank ", op.rank, " of ", op.widths.size()));
  }
  shape.back() = std::accumulate(op.widths.begin(), op.widths.end(), int64_t{0});
  context.SetOutput(0, DType::kFloat32, SizeList(shape.begin(), shape.end()));
  return absl::OkStatus();
}

absl::Status AllGatherKernel(const KernelContext& context) {
  const AllGatherOp op = AllGatherOp::From(context.node);
  const int64_t width = context.inputs[0].shape.back(), all = context.outputs[0].shape.back();
  const int64_t before =
      std::accumulate(op.widths.begin(), op.widths.begin() + op.rank, int64_t{0});
  const auto* x = context.inputs[0].as<float>();
  auto* y = context.outputs[0].as<float>();
  std::memset(y, 0, static_cast<size_t>(NumElements(context.outputs[0].shape)) * sizeof(float));
  const int64_t rows = all == 0 ? 0 : NumElements(context.outputs[0].shape) / all;
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(y + row * all + before, x + row * width,
                static_cast<size_t>(width) * sizeof(float));
  }
  return absl::OkStatus();
}

absl::Status BroadcastRule(InferContext& context) {
  const BroadcastOp op = BroadcastOp::From(context.attributes());
  Shape shape = context.pinned_shape(0);
  if (shape.empty()) return absl::InvalidArgumentError("an operand without rows");
  const Shape operand = shape;
  shape.resize(1);
  shape.insert(shape.end(), op.sizes.begin(), op.sizes.end());
  if (op.rank == op.root) {
    RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
    if (operand != shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("an operand ", ShapeToString(operand), " is not ", ShapeToString(shape)));
    }
  }
  context.SetOutput(0, DType::kFloat32, SizeList(shape.begin(), shape.end()));
  return absl::OkStatus();
}

absl::Status BroadcastKernel(const KernelContext& context) {
  const BroadcastOp op = BroadcastOp::From(context.node);
  const MutableTensorView& y = context.outputs[0];
  const auto bytes = static_cast<size_t>(NumElements(y.shape)) * sizeof(float);
  if (bytes == 0) return absl::OkStatus();
  if (op.rank == op.root) {
    std::memcpy(y.data, context.inputs[0].data, bytes);
  } else {
    std::memset(y.data, 0, bytes);
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops

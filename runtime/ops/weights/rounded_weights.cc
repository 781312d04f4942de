#include "runtime/ops/weights/rounded_weights.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/ops/weights/bits_op.h"
#include "runtime/ops/weights/block_formats.h"
#include "runtime/ops/weights/narrowed_weights.h"
#include "runtime/ops/weights/rounded_op.h"
#include "runtime/ops/weights/stored_op.h"

namespace reprise::ops {
namespace {

// A column of a matrix, or a row that stands for one.
struct Column {
  float operator[](int64_t i) const { return data[i * step]; }
  const float* data;
  int64_t step;
};

// The matrix that the op rounds.
struct Rounded {
  explicit Rounded(const KernelContext& context)
      : op(RoundedPartOp::From(context.node)),
        data(context.inputs[0].as<float>()),
        rows(context.inputs[0].shape[op.axis == 1 ? 0 : 1]),
        columns(context.inputs[0].shape[op.axis == 1 ? 1 : 0]) {}
  Column At(int64_t column) const {
    return op.axis == 1 ? Column{data + column, columns} : Column{data + column * rows, 1};
  }

  RoundedPartOp op;
  const float* data;
  int64_t rows, columns;
};

float LargestOf(const Column& column, int64_t rows) {
  float largest = 0;
  for (int64_t i = 0; i < rows; ++i) largest = std::max(largest, std::abs(column[i]));
  return largest;
}

// Numbers as steps, those that are none as 0.
float StepsOf(float x, float scale, float least, float most) {
  const float steps = scale == 0 ? 0 : std::nearbyint(x / scale);
  return std::isnan(steps) ? 0 : std::clamp(steps, least, most);
}

void RoundToBytes(const Rounded& matrix, const MutableTensorView& y) {
  const bool scales = matrix.op.part == RoundedPartOp::kScales;
  for (int64_t column = 0; column < matrix.columns; ++column) {
    WatchWork(matrix.rows);
    const Column from = matrix.At(column);
    const float scale = LargestOf(from, matrix.rows) / 127;
    if (scales) {
      y.as<float>()[column] = scale;
      continue;
    }
    auto* const to = y.as<int8_t>() + (from.data - matrix.data);
    for (int64_t i = 0; i < matrix.rows; ++i) {
      to[i * from.step] = static_cast<int8_t>(StepsOf(from[i], scale, -127, 127));
    }
  }
}

void RoundToNibbles(const Rounded& matrix, const MutableTensorView& y) {
  const bool scales = matrix.op.part == RoundedPartOp::kScales;
  const int64_t blocks = (matrix.rows + matrix.op.block - 1) / matrix.op.block;
  const int64_t bytes = (matrix.rows + 1) / 2;
  if (!scales) std::fill_n(y.as<uint8_t>(), matrix.columns * bytes, uint8_t{0});
  for (int64_t column = 0; column < matrix.columns; ++column) {
    WatchWork(matrix.rows);
    const Column from = matrix.At(column);
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t begin = b * matrix.op.block;
      const int64_t end = std::min(begin + matrix.op.block, matrix.rows);
      float largest = 0;
      for (int64_t i = begin; i < end; ++i) {
        if (std::abs(from[i]) > std::abs(largest)) largest = from[i];
      }
      const float scale = largest / -8;
      if (scales) {
        y.as<float>()[column * blocks + b] = scale;
        continue;
      }
      for (int64_t i = begin; i < end; ++i) {
        const auto number = static_cast<int>(StepsOf(from[i], scale, -8, 7)) + 8;
        y.as<uint8_t>()[column * bytes + i / 2] |= static_cast<uint8_t>(number << (i % 2 * 4));
      }
    }
  }
}

ParameterExprPtr PartOf(const ParameterExprPtr& weights, Attributes attributes, const char* part,
                        DType dtype, Shape shape) {
  attributes.Set("part", std::string(part));
  return ParameterExpr::Apply(RoundedPartOp::kName, std::move(attributes), {weights}, dtype,
                              std::move(shape));
}

}  // namespace

absl::Status RoundedPartRule(InferContext& context) {
  const RoundedPartOp op = RoundedPartOp::From(context.attributes());
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  RETURN_IF_ERROR(CheckRank(context, 0, 2));
  const bool numbers = op.part == RoundedPartOp::kNumbers;
  const bool bytes = op.bits == 8 && op.block == 0, nibbles = op.bits == 4 && op.block > 0;
  if ((!numbers && op.part != RoundedPartOp::kScales) || (!bytes && !nibbles) ||
      (op.axis != 0 && op.axis != 1)) {
    return absl::InvalidArgumentError(absl::StrCat("no part '", op.part, "' of ", op.bits,
                                                   " bits in blocks of ", op.block, " along dim ",
                                                   1 - op.axis));
  }
  const SizeList& shape = context.shape(0);
  const Size columns = shape[static_cast<size_t>(op.axis)];
  const Size rows = shape[static_cast<size_t>(1 - op.axis)];
  if (bytes) {
    context.SetOutput(0, numbers ? DType::kInt8 : DType::kFloat32,
                      numbers ? shape : SizeList{columns});
  } else {
    const Size step = numbers ? Size(2) : Size(op.block);
    context.SetOutput(0, numbers ? DType::kUInt8 : DType::kFloat32,
                      {columns, (rows + step - Size(1)) / step});
  }
  return absl::OkStatus();
}

absl::Status RoundedPartKernel(const KernelContext& context) {
  const Rounded matrix(context);
  matrix.op.bits == 8 ? RoundToBytes(matrix, context.outputs[0])
                      : RoundToNibbles(matrix, context.outputs[0]);
  return absl::OkStatus();
}

ParameterExprPtr RoundedWeights(const ParameterExprPtr& weights, int64_t axis, WeightBits form) {
  const ParameterExprPtr floats = WithoutNarrowing(weights);
  const Shape& shape = floats->shape();
  const int64_t columns = shape[static_cast<size_t>(axis)];
  const int64_t rows = shape[static_cast<size_t>(1 - axis)];
  if (form != WeightBits::kInt4) {
    const Attributes attributes = {{"axis", axis}, {"bits", int64_t{8}}};
    return ParameterExpr::Apply(
        "DequantizeLinear", {{"axis", axis}},
        {PartOf(floats, attributes, RoundedPartOp::kNumbers, DType::kInt8, shape),
         PartOf(floats, attributes, RoundedPartOp::kScales, DType::kFloat32, {columns})},
        DType::kFloat32, shape);
  }
  const Attributes attributes = {{"axis", axis}, {"bits", int64_t{4}}, {"block", kNibbleBlock}};
  ParameterExprPtr turned = ParameterExpr::Apply(
      DequantizeBitsOp::kName, {{"K", rows}, {"bits", int64_t{4}}, {"block_size", kNibbleBlock}},
      {PartOf(floats, attributes, RoundedPartOp::kNumbers, DType::kUInt8,
              {columns, (rows + 1) / 2}),
       PartOf(floats, attributes, RoundedPartOp::kScales, DType::kFloat32,
              {columns, (rows + kNibbleBlock - 1) / kNibbleBlock})},
      DType::kFloat32, {columns, rows});
  if (axis == 0) return turned;
  return ParameterExpr::Apply("Transpose", {{"perm", std::vector<int64_t>{1, 0}}}, {turned},
                              DType::kFloat32, shape);
}

int64_t StoredBlockOf(const ParameterExprPtr& weights, int64_t axis) {
  if (weights == nullptr || weights->is_leaf() || weights->is_constant()) return 0;
  const std::string& op = weights->op();
  const Attributes& attributes = weights->attributes();
  if (op == DequantizeBitsOp::kName) return DequantizeBitsOp::From(attributes).block_size;
  if (op == StoredFloatsOp::kName) {
    const BlockFormat* const format = FindBlockFormat(StoredFloatsOp::From(attributes).format);
    return format == nullptr ? 0 : format->group;
  }
  if (op == "DequantizeLinear") return attributes.Int("block_size", 0);
  if (op == "Transpose") return StoredBlockOf(weights->inputs()[0], 1 - axis);
  if (op == "Concat" || op == "Identity") return StoredBlockOf(weights->inputs()[0], axis);
  return 0;
}

}  // namespace reprise::ops

#include "runtime/ops/attention/attention_microsoft.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/attention_mask.h"
#include "runtime/ops/kit/floats.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/reduce/layer_norm_op.h"

namespace reprise::ops {
namespace {

constexpr size_t kNoBias = std::numeric_limits<size_t>::max();  // QAttention takes no such input

// The widths of q, k and v in the projection.
struct Widths {
  int64_t heads, qk, v;
  int64_t all() const { return 2 * qk + v; }
};

absl::StatusOr<Widths> WidthsOf(const Node& node, int64_t columns) {
  const int64_t heads = node.attributes.Int("num_heads", 0);
  const std::vector<int64_t> sizes =
      node.attributes.Ints("qkv_hidden_sizes", {columns / 3, columns / 3, columns / 3});
  if (heads <= 0 || sizes.size() != 3 || sizes[0] > columns || sizes[2] > columns ||
      sizes[0] != sizes[1] || sizes[0] <= 0 || sizes[2] <= 0 || sizes[0] % heads != 0 ||
      sizes[2] % heads != 0 || 2 * sizes[0] + sizes[2] != columns) {
    return absl::InvalidArgumentError(
        absl::StrCat(columns, " columns of q, k, v do not divide into ", heads, " heads"));
  }
  return Widths{heads, sizes[0], sizes[2]};
}

// Does the checks that Attention and QAttention share, and sets output 0.
absl::Status CheckProjection(InferContext& context, size_t bias, size_t mask, size_t past,
                             size_t attention_bias) {
  RETURN_IF_ERROR(CheckRank(context, 0, 3));
  RETURN_IF_ERROR(CheckRank(context, 1, 2));
  const SizeList& x = context.shape(0);
  ASSIGN_OR_RETURN(const Widths widths, WidthsOf(context.node(), context.shape(1)[1].Pinned()));
  if (x[2] != context.shape(1)[0]) {
    return absl::InvalidArgumentError("the weights do not match the input's width");
  }
  if (context.has_input(bias)) {
    RETURN_IF_ERROR(CheckType(context, bias, TypeBit(DType::kFloat32)));
    if (context.shape(bias) != SizeList{widths.all()}) {
      return absl::InvalidArgumentError(
          absl::StrCat("the bias does not have ", widths.all(), " elements"));
    }
  }
  for (size_t i = past; i < context.num_inputs(); ++i) {
    if (context.has_input(i) && i != attention_bias) {
      return absl::UnimplementedError(absl::StrCat("input ", i, " is not supported"));
    }
  }
  if (context.attributes().Int("do_rotary", 0) != 0) {
    return absl::UnimplementedError("attribute 'do_rotary' is not supported");
  }
  const SizeList scores = {x[0], widths.heads, x[1], x[1]};
  if (context.has_input(mask)) RETURN_IF_ERROR(CheckPaddingMask(context, mask, scores));
  if (context.has_input(attention_bias)) {
    RETURN_IF_ERROR(CheckAttentionBias(context, attention_bias, scores));
  }
  context.SetOutput(0, DType::kFloat32, {x[0], x[1], widths.v});
  return absl::OkStatus();
}

// Computes attention over the projected rows [batch * length, widths.all()].
absl::Status Attend(const KernelContext& context, const Widths& widths,
                    const std::vector<float>& qkv, size_t mask, size_t attention_bias) {
  const Shape& x = context.inputs[0].shape;
  const int64_t row = widths.all();
  const int64_t size = widths.qk / widths.heads, size_v = widths.v / widths.heads;
  const Shape scores = {x[0], widths.heads, x[1], x[1]};
  const AttentionProblem a = {
      .batch = x[0],
      .heads = widths.heads,
      .queries = x[1],
      .keys = x[1],
      .size = size,
      .size_v = size_v,
      .q = {qkv.data(), x[1] * row, size, row},
      .k = {qkv.data() + widths.qk, x[1] * row, size, row},
      .v = {qkv.data() + 2 * widths.qk, x[1] * row, size_v, row},
      .scale = ScaleOf(context.node.attributes, size),
      .bias = MicrosoftBias(context, scores, mask, attention_bias, /*past=*/0)};
  ComputeAttention(a, context.outputs[0].as<float>(), x[1] * widths.v, size_v, widths.v);
  return absl::OkStatus();
}

void AddBias(const KernelContext& context, size_t input, std::vector<float>& rows, int64_t width) {
  if (!HasInput(context, input)) return;
  const float* bias = context.inputs[input].as<float>();
  for (size_t i = 0; i < rows.size(); ++i) rows[i] += bias[i % width];
}

}  // namespace

// input, weights, bias?, mask_index?, past?, attention_bias?, past_sequence_length?
absl::Status MicrosoftAttentionRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  RETURN_IF_ERROR(CheckSameType(context, 0, 1));
  return CheckProjection(context, 2, 3, 4, 5);
}

absl::Status MicrosoftAttentionKernel(const KernelContext& context) {
  const Shape& x = context.inputs[0].shape;
  const int64_t columns = context.inputs[1].shape[1];
  ASSIGN_OR_RETURN(const Widths widths, WidthsOf(context.node, columns));
  std::vector<float> qkv(x[0] * x[1] * columns);
  MultiplyF32(context.inputs[0].as<float>(), context.inputs[1].as<float>(), qkv.data(), x[0] * x[1],
              x[2], columns);
  AddBias(context, 2, qkv, columns);
  return Attend(context, widths, qkv, 3, 5);
}

// input, weight, bias, input_scale, weight_scale, mask_index?, input_zero_point?,
// weight_zero_point?, past?
absl::Status QAttentionRule(InferContext& context) {
  constexpr uint32_t kBytes = TypeBit(DType::kInt8) | TypeBit(DType::kUInt8);
  for (size_t i : {0, 1}) RETURN_IF_ERROR(CheckType(context, i, kBytes));
  for (size_t i : {3, 4}) RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kFloat32)));
  RETURN_IF_ERROR(CheckProjection(context, 2, 5, 8, kNoBias));
  const Size columns = context.shape(1)[1];
  for (size_t i : {3, 4, 6, 7}) {
    if (!context.has_input(i)) continue;
    const Size count = NumElements(context.shape(i));
    const bool per_column = (i == 4 || i == 7) && count == columns;
    if (count != 1 && !per_column) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", count, " elements"));
    }
  }
  for (size_t i : {6, 7}) {
    if (context.has_input(i)) RETURN_IF_ERROR(CheckSameType(context, i - 6, i));
  }
  return absl::OkStatus();
}

absl::Status QAttentionKernel(const KernelContext& context) {
  const Shape& x = context.inputs[0].shape;
  const int64_t columns = context.inputs[1].shape[1];
  ASSIGN_OR_RETURN(const Widths widths, WidthsOf(context.node, columns));
  const auto optional = [&](size_t i) {
    return HasInput(context, i) ? context.inputs[i] : TensorView();
  };
  const TensorView products[4] = {context.inputs[0], context.inputs[1], optional(6), optional(7)};
  std::vector<int32_t> sums(x[0] * x[1] * columns);
  const MutableTensorView out[1] = {{DType::kInt32, {x[0], x[1], columns}, sums.data()}};
  RETURN_IF_ERROR(MatMulIntegerKernel({context.node, products, out, context.errors}));
  const float input_scale = *context.inputs[3].as<float>();
  const std::vector<float> scales = FloatsOf(context.inputs[4]);
  std::vector<float> qkv(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const float scale = scales.size() == 1 ? scales[0] : scales[i % columns];
    qkv[i] = static_cast<float>(sums[i]) * input_scale * scale;
  }
  AddBias(context, 2, qkv, columns);
  return Attend(context, widths, qkv, 5, kNoBias);
}

// input_ids, segment_ids?, words, positions, segments?, gamma, beta, mask?, position_ids?
//   -> normalised, mask_index, sum
absl::Status EmbedLayerNormRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kIndices));
  RETURN_IF_ERROR(CheckRank(context, 0, 2));
  for (size_t i : {2, 3, 5, 6}) {
    if (!context.has_input(i)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " must not be left out"));
    }
  }
  if (context.has_input(1) != context.has_input(4)) {
    return absl::InvalidArgumentError("segment ids and segment table come together");
  }
  const SizeList& ids = context.shape(0);
  for (size_t i : {1, 7, 8}) {
    if (!context.has_input(i)) continue;
    RETURN_IF_ERROR(CheckType(context, i, kIndices));
    const bool one_row = i == 8 && context.shape(i) == SizeList{1, ids[1]};
    if (context.shape(i) != ids && !one_row) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " does not match the ids"));
    }
  }
  Size width = -1;
  for (size_t i : {2, 3, 4}) {
    if (!context.has_input(i)) continue;
    RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kFloat32)));
    RETURN_IF_ERROR(CheckRank(context, i, 2));
    if (width < 0) width = context.shape(i)[1];
    if (context.shape(i)[1] != width)
      return absl::InvalidArgumentError("the tables' widths differ");
  }
  if (!context.has_input(8) && ids[1] > context.shape(3)[0]) {
    return absl::InvalidArgumentError(
        absl::StrCat(ids[1], " positions for a table of ", context.shape(3)[0]));
  }
  for (size_t i : {5, 6}) {
    RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kFloat32)));
    if (context.shape(i) != SizeList{width}) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " does not have ", width, " elements"));
    }
  }
  context.SetOutput(0, DType::kFloat32, {ids[0], ids[1], width});
  context.SetOutput(1, DType::kInt32, {ids[0]});
  context.SetOutput(2, DType::kFloat32, {ids[0], ids[1], width});
  return absl::OkStatus();
}

absl::Status EmbedLayerNormKernel(const KernelContext& context) {
  const Shape& shape = context.inputs[0].shape;
  const int64_t rows = shape[0] * shape[1];
  const int64_t width = context.inputs[2].shape[1];
  std::vector<float> sum(rows * width, 0.0f);
  const auto add = [&](size_t ids_input, size_t table_input) {
    if (!HasInput(context, table_input)) return;
    const TensorView& table = context.inputs[table_input];
    std::vector<int64_t> ids = Int64sOf(context, ids_input);
    const bool counted = ids.empty();  // Positions without ids are 0, 1, 2, ...
    for (int64_t row = 0; row < rows && table.num_elements() > 0; ++row) {
      const int64_t at = counted ? row % shape[1] : row % static_cast<int64_t>(ids.size());
      int64_t id = counted ? at : ids[at];
      if (id < 0 || id >= table.shape[0]) {
        context.errors.Report(static_cast<int>(ids_input), at, id, 0, table.shape[0] - 1);
        id = 0;
      }
      const float* from = table.as<float>() + id * width;
      for (int64_t i = 0; i < width; ++i) sum[row * width + i] += from[i];
    }
  };
  add(0, 2);
  add(8, 3);
  add(1, 4);
  const float epsilon = EmbedLayerNormOp::From(context.node.attributes).epsilon;
  const float* gamma = context.inputs[5].as<float>();
  const float* beta = context.inputs[6].as<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const float* x = sum.data() + row * width;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < width; ++i) mean += x[i];
    mean /= static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) square += (x[i] - mean) * (x[i] - mean);
    const double inverse = 1 / std::sqrt(square / static_cast<double>(width) + epsilon);
    for (int64_t i = 0; i < width; ++i) {
      context.outputs[0].as<float>()[row * width + i] =
          static_cast<float>((x[i] - mean) * inverse * gamma[i] + beta[i]);
    }
  }
  if (HasOutput(context, 1)) {
    const std::vector<int64_t> mask = Int64sOf(context, 7);
    for (int64_t b = 0; b < shape[0]; ++b) {
      int32_t count = 0;
      for (int64_t s = 0; s < shape[1] && !mask.empty(); ++s) count += mask[b * shape[1] + s] == 1;
      context.outputs[1].as<int32_t>()[b] = count;
    }
  }
  if (HasOutput(context, 2)) std::copy(sum.begin(), sum.end(), context.outputs[2].as<float>());
  return absl::OkStatus();
}

}  // namespace reprise::ops

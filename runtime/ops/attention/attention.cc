#include "runtime/ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

struct AttentionDims {
  int64_t batch, queries, keys, heads, size, size_v;
  int64_t kv_heads = 0;
  bool packed, k_by_head = false, v_by_head = false;
};

// One of k and v: [batch, rows, heads * size], or head by head.
struct KeyDims {
  int64_t batch, rows, heads, size;
};

std::optional<KeyDims> KeyDimsOf(const Shape& shape, bool by_head, int64_t heads) {
  if (shape.size() != (by_head ? 4 : 3)) return std::nullopt;
  if (by_head) return KeyDims{shape[0], shape[2], shape[1], shape[3]};
  if (shape[2] % heads != 0) return std::nullopt;
  return KeyDims{shape[0], shape[1], heads, shape[2] / heads};
}

// `shape(i)` is the shape of input i.
template <typename F>
absl::StatusOr<AttentionDims> AttentionDimsOf(const Node& node, F shape) {
  AttentionDims dims;
  const auto op = AttentionOp::From(node.attributes);
  dims.packed = op.packed_qkv;
  dims.heads = op.num_heads;
  if (dims.heads <= 0) return absl::InvalidArgumentError("attribute 'num_heads' is missing");
  const Shape& q = shape(0);
  if (q.size() != 3) return RankError("input 0 does not have 3 dims");
  dims.batch = q[0];
  dims.queries = q[1];
  const int64_t given_v = op.head_size_v;
  if (dims.heads > std::max<int64_t>(q[2], 1) || given_v > q[2]) {
    return absl::InvalidArgumentError(
        absl::StrCat("a width of ", q[2], " does not hold ", dims.heads, " heads"));
  }
  if (dims.packed) {
    dims.keys = dims.queries;
    const int64_t v_width = given_v > 0 ? given_v * dims.heads : q[2] / 3;
    if ((q[2] - v_width) % (2 * dims.heads) != 0 || v_width % dims.heads != 0 || q[2] < v_width) {
      return absl::InvalidArgumentError(
          absl::StrCat("a width of ", q[2], " does not hold q, k, v of ", dims.heads, " heads"));
    }
    dims.size = (q[2] - v_width) / (2 * dims.heads);
    dims.size_v = v_width / dims.heads;
    return dims;
  }
  dims.k_by_head = op.k_by_head;
  dims.v_by_head = op.v_by_head;
  const Shape& k_shape = shape(1);
  const Shape& v_shape = shape(2);
  const auto k = KeyDimsOf(k_shape, dims.k_by_head, dims.heads);
  const auto v = KeyDimsOf(v_shape, dims.v_by_head, dims.heads);
  if (!k.has_value() || !v.has_value() || k->batch != q[0] || v->batch != q[0] ||
      v->rows != k->rows || v->heads != k->heads || k->heads < 1 || dims.heads % k->heads != 0 ||
      k->size * dims.heads != q[2]) {
    return absl::InvalidArgumentError(
        absl::StrCat("q ", ShapeToString(q), ", k ", ShapeToString(k_shape), ", v ",
                     ShapeToString(v_shape), " do not fit ", dims.heads, " heads"));
  }
  dims.keys = k->rows;
  dims.size = k->size;
  dims.size_v = v->size;
  dims.kv_heads = k->heads;
  return dims;
}

}  // namespace

void ComputeAttention(const AttentionProblem& p, float* out, int64_t batch_stride,
                      int64_t head_stride, int64_t row_stride) {
  std::vector<float> scores(p.keys);
  std::vector<double> sums(p.size_v);
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t h = 0; h < p.heads; ++h) {
      for (int64_t i = 0; i < p.queries; ++i) {
        const int64_t row = ((b * p.heads + h) * p.queries + i) * p.keys;
        const float* q = p.q.row(b, h, i);
        const auto report = [&](int stage) {
          if (p.scores_out != nullptr && p.scores_stage == stage) {
            std::copy(scores.begin(), scores.end(), p.scores_out + row);
          }
        };
        for (int64_t j = 0; j < p.keys; ++j) {
          WatchWork(p.size + p.size_v);
          const float* k = p.k.row(b, h / p.kv_group, j);
          float dot = 0;
          for (int64_t d = 0; d < p.size; ++d) dot += q[d] * k[d];
          scores[j] = dot * p.scale;
        }
        report(0);
        if (p.softcap > 0) {
          for (float& score : scores) score = p.softcap * std::tanh(score / p.softcap);
        }
        report(1);
        if (!p.bias.empty()) {
          // A hidden key stays hidden, also where its score is infinite or NaN.
          for (int64_t j = 0; j < p.keys; ++j) {
            const float bias = p.bias[row + j];
            scores[j] = bias == -std::numeric_limits<float>::infinity() ? bias : scores[j] + bias;
          }
        }
        report(2);
        float largest = -std::numeric_limits<float>::infinity();
        for (float score : scores) largest = std::max(largest, score);
        if (p.sinks != nullptr) largest = std::max(largest, p.sinks[h]);
        double total = 0;
        for (float& score : scores) total += (score = std::exp(score - largest));
        if (p.sinks != nullptr) total += std::exp(p.sinks[h] - largest);
        const bool masked = largest == -std::numeric_limits<float>::infinity();
        for (float& score : scores) {
          score = masked && p.nan_to_zero ? 0.0f : static_cast<float>(score / total);
        }
        report(3);
        std::fill(sums.begin(), sums.end(), 0.0);
        for (int64_t j = 0; j < p.keys; ++j) {
          const float* v = p.v.row(b, h / p.kv_group, j);
          for (int64_t d = 0; d < p.size_v; ++d) sums[d] += scores[j] * v[d];
        }
        float* y = out + b * batch_stride + h * head_stride + i * row_stride;
        for (int64_t d = 0; d < p.size_v; ++d) y[d] = static_cast<float>(sums[d]);
      }
    }
  }
}

std::vector<float> SpreadMask(const TensorView& mask, const Shape& scores) {
  std::vector<float> bias(NumElements(scores));
  if (mask.dtype == DType::kBool) {
    BroadcastApply(scores, bias.data(), mask.as<Bool>(), mask.shape,
                   [](Bool keep) { return keep ? 0.0f : -std::numeric_limits<float>::infinity(); });
  } else {
    BroadcastApply(scores, bias.data(), mask.as<float>(), mask.shape, [](float x) { return x; });
  }
  return bias;
}

absl::Status CheckAttentionInputs(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  const bool packed = AttentionOp::From(context.attributes()).packed_qkv;
  for (size_t i : {1, 2}) {
    if (context.has_input(i) == packed) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, packed ? " is given" : " is left out"));
    }
    if (!packed) RETURN_IF_ERROR(CheckSameType(context, 0, i));
  }
  return absl::OkStatus();
}

absl::Status CheckSinks(InferContext& context, size_t input, Size heads) {
  if (!context.has_input(input)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckType(context, input, TypeBit(DType::kFloat32)));
  if (context.shape(input) == SizeList{heads}) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the sinks have the shape ",
                                                 ShapeToString(context.pinned_shape(input)),
                                                 " for ", heads, " heads"));
}

absl::Status AttentionRule(InferContext& context) {
  RETURN_IF_ERROR(CheckAttentionInputs(context));
  ASSIGN_OR_RETURN(const AttentionDims dims,
                   AttentionDimsOf(context.node(), [&](size_t i) -> const Shape& {
                     return context.pinned_shape(i);
                   }));
  if (context.has_input(3)) {
    RETURN_IF_ERROR(CheckType(context, 3, TypeBit(DType::kFloat32) | kBools));
    const Shape scores = {dims.batch, dims.heads, dims.queries, dims.keys};
    ASSIGN_OR_RETURN(const Shape broadcast, BroadcastShapes(scores, context.pinned_shape(3)));
    if (broadcast != scores) {
      return absl::InvalidArgumentError(
          absl::StrCat("the mask does not broadcast to ", ShapeToString(scores)));
    }
  }
  RETURN_IF_ERROR(CheckSinks(context, AttentionOp::kSinks, dims.heads));
  context.SetOutput(0, DType::kFloat32, {dims.batch, dims.queries, dims.heads * dims.size_v});
  return absl::OkStatus();
}

absl::Status AttentionKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const AttentionDims dims,
                   AttentionDimsOf(context.node, [&](size_t i) -> const Shape& {
                     return context.inputs[i].shape;
                   }));
  const auto op = AttentionOp::From(context.node.attributes);
  AttentionProblem p = {.batch = dims.batch,
                        .heads = dims.heads,
                        .queries = dims.queries,
                        .keys = dims.keys,
                        .size = dims.size,
                        .size_v = dims.size_v,
                        .scale = op.scale,
                        .softcap = op.softcap,
                        .nan_to_zero = op.nan_to_zero};
  if (HasInput(context, AttentionOp::kSinks)) {
    p.sinks = context.inputs[AttentionOp::kSinks].as<float>();
  }
  const int64_t width = dims.heads * dims.size;
  const int64_t width_v = dims.heads * dims.size_v;
  if (dims.packed) {
    const float* data = context.inputs[0].as<float>();
    const int64_t row = 2 * width + width_v;
    p.q = {data, dims.queries * row, dims.size, row};
    p.k = {data + width, dims.queries * row, dims.size, row};
    p.v = {data + 2 * width, dims.queries * row, dims.size_v, row};
  } else {
    p.q = {context.inputs[0].as<float>(), dims.queries * width, dims.size, width};
    p.kv_group = dims.heads / dims.kv_heads;
    const auto view = [&](size_t i, bool by_head, int64_t size) -> HeadView {
      const int64_t row = dims.kv_heads * size, head = dims.keys * size;
      const auto* data = context.inputs[i].as<float>();
      if (by_head) return {data, dims.kv_heads * head, head, size};
      return {data, dims.keys * row, size, row};
    };
    p.k = view(1, dims.k_by_head, dims.size);
    p.v = view(2, dims.v_by_head, dims.size_v);
  }
  if (HasInput(context, 3)) {
    p.bias = SpreadMask(context.inputs[3], {dims.batch, dims.heads, dims.queries, dims.keys});
  }
  ComputeAttention(p, context.outputs[0].as<float>(), dims.queries * width_v, dims.size_v, width_v);
  return absl::OkStatus();
}

}  // namespace reprise::ops

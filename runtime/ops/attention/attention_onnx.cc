#include "runtime/ops/attention/attention_onnx.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/attention_mask.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/floats.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

// q, k or v as [batch, heads, length, size].
template <typename Number>
struct Heads {
  Number batch, heads, length, size;
};

template <typename List>
absl::StatusOr<Heads<typename List::value_type>> HeadsOf(const List& shape, int64_t heads,
                                                         absl::string_view what) {
  using Found = Heads<typename List::value_type>;
  if (shape.size() == 4) return Found{shape[0], shape[1], shape[2], shape[3]};
  if (shape.size() != 3 || heads <= 0 || shape[2] % heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", ShapeToString(shape), " does not divide into ", heads, " heads"));
  }
  return Found{shape[0], heads, shape[1], shape[2] / heads};
}

HeadView ViewOf(const float* data, const Shape& shape, const Heads<int64_t>& h) {
  if (shape.size() == 4) {
    return {data, h.heads * h.length * h.size, h.length * h.size, h.size};
  }
  return {data, h.length * h.heads * h.size, h.size, h.heads * h.size};
}

template <typename Number>
struct Problem {
  Heads<Number> q, k, v;
  Number past = 0;
};

// `shape(i)` is the shape of input i, `has(i)` whether it is given.
// Returns the length of the past that inputs `at` and the next one are; 0 where they are left out.
template <typename Number, typename F, typename G>
absl::StatusOr<Number> PastOf(const Problem<Number>& p, size_t at, F shape, G has) {
  if (has(at) != has(at + 1)) {
    return absl::InvalidArgumentError("past key and value come together");
  }
  if (!has(at)) return Number(0);
  const auto& key = shape(at);
  const auto& value = shape(at + 1);
  if (key.size() != 4 || value.size() != 4 || key[0] != p.k.batch || key[1] != p.k.heads ||
      key[3] != p.k.size || value[0] != p.v.batch || value[1] != p.v.heads || value[2] != key[2] ||
      value[3] != p.v.size) {
    return absl::InvalidArgumentError(absl::StrCat("past key ", ShapeToString(key), " and value ",
                                                   ShapeToString(value),
                                                   " do not match key and value"));
  }
  return key[2];
}

template <typename Number, typename F, typename G>
absl::StatusOr<Problem<Number>> ProblemOf(const Node& node, F shape, G has) {
  Problem<Number> p;
  ASSIGN_OR_RETURN(p.q, HeadsOf(shape(0), node.attributes.Int("q_num_heads", 0), "q"));
  const int64_t kv_heads = node.attributes.Int("kv_num_heads", 0);
  ASSIGN_OR_RETURN(p.k, HeadsOf(shape(1), kv_heads, "k"));
  ASSIGN_OR_RETURN(p.v, HeadsOf(shape(2), kv_heads, "v"));
  ASSIGN_OR_RETURN(p.past, PastOf(p, 4, shape, has));
  if (p.q.batch != p.k.batch || p.q.batch != p.v.batch || p.q.size != p.k.size ||
      p.k.heads != p.v.heads || p.k.length != p.v.length || p.k.heads == 0 ||
      p.q.heads % p.k.heads != 0) {
    return absl::InvalidArgumentError("q, k and v do not agree");
  }
  return p;
}

// Returns [batch, heads, past + length, size], dense: input `past`, if there is a past, and then
// `rows`.
std::vector<float> Present(const KernelContext& context, const HeadView& rows, size_t past,
                           const Heads<int64_t>& h, int64_t past_length) {
  const std::vector<float> before =
      past_length > 0 ? FloatsOf(context.inputs[past]) : std::vector<float>();
  std::vector<float> all;
  all.reserve(h.batch * h.heads * (past_length + h.length) * h.size);
  for (int64_t b = 0; b < h.batch; ++b) {
    for (int64_t head = 0; head < h.heads; ++head) {
      const int64_t from = (b * h.heads + head) * past_length * h.size;
      all.insert(all.end(), before.begin() + from, before.begin() + from + past_length * h.size);
      for (int64_t i = 0; i < h.length; ++i) {
        const float* row = rows.row(b, head, i);
        all.insert(all.end(), row, row + h.size);
      }
    }
  }
  return all;
}

// Returns attention over `q`, and keys and values as Present gives them.
AttentionProblem AttentionOf(const Problem<int64_t>& p, const HeadView& q,
                             const std::vector<float>& k, const std::vector<float>& v) {
  const int64_t keys = p.past + p.k.length;
  return {.batch = p.q.batch,
          .heads = p.q.heads,
          .queries = p.q.length,
          .keys = keys,
          .size = p.q.size,
          .size_v = p.v.size,
          .kv_group = p.q.heads / p.k.heads,
          .q = q,
          .k = {k.data(), p.k.heads * keys * p.k.size, keys * p.k.size, p.k.size},
          .v = {v.data(), p.v.heads * keys * p.v.size, keys * p.v.size, p.v.size}};
}

// Which keys a query of a batch row may see by its position alone, [first, last].
struct Visible {
  bool causal;
  int64_t left, right;  // -1: no bound
  int64_t keys;

  static Visible Of(const Attributes& attributes, int64_t keys) {
    return {attributes.Int("is_causal", 0) != 0, attributes.Int("left_window_size", -1),
            attributes.Int("right_window_size", -1), keys};
  }
  bool all() const { return !causal && left < 0 && right < 0; }
  // `position` is the query's among the keys.
  int64_t first(int64_t position) const { return left < 0 ? 0 : position - left; }
  int64_t last(int64_t position) const {
    int64_t last = keys - 1;
    if (causal) last = std::min(last, position);
    if (right >= 0) last = std::min(last, position + right);
    return last;
  }
};

// Adds the limits that positions, windows and the counts of keys set.
void MaskPositions(const KernelContext& context, const Problem<int64_t>& p, const Shape& scores,
                   std::vector<float>& bias) {
  const std::vector<int64_t> counts =
      HasInput(context, 6) ? Int64sOf(context, 6) : std::vector<int64_t>();
  const Visible visible = Visible::Of(context.node.attributes, scores[3]);
  if (counts.empty() && visible.all()) return;
  bias.resize(NumElements(scores), 0.0f);
  float* row = bias.data();
  for (int64_t b = 0; b < scores[0]; ++b) {
    const int64_t count = counts.empty() ? scores[3] : counts[b];
    // The keys before this block of queries: the past's, or a cache's that is kept outside.
    const int64_t before = counts.empty() ? p.past : count - p.q.length;
    for (int64_t i = 0; i < scores[1] * scores[2]; ++i, row += scores[3]) {
      const int64_t position = i % scores[2] + before;
      const int64_t first = visible.first(position);
      const int64_t last = std::min(visible.last(position), count - 1);
      for (int64_t k = 0; k < scores[3]; ++k) {
        if (k < first || k > last) row[k] = -std::numeric_limits<float>::infinity();
      }
    }
  }
}

// Returns the target of a mask, which may end before the keys do: keys after its end are hidden.
template <typename List>
List MaskTarget(const List& mask, const List& scores) {
  List target = scores;
  if (!mask.empty() && mask.back() > 1 && mask.back() < scores[3]) target[3] = mask.back();
  return target;
}

std::vector<float> MaskBias(const TensorView& mask, const Shape& scores) {
  const Shape target = MaskTarget(mask.shape, scores);
  std::vector<float> bias;
  if (mask.dtype == DType::kBool || mask.dtype == DType::kFloat32) {
    bias = SpreadMask(mask, target);
  } else {
    const std::vector<float> floats = FloatsOf(mask);
    bias = SpreadMask({DType::kFloat32, mask.shape, floats.data()}, target);
  }
  if (target == scores) return bias;
  std::vector<float> wide(NumElements(scores), -std::numeric_limits<float>::infinity());
  for (int64_t row = 0; row < NumElements(scores) / scores[3]; ++row) {
    std::copy_n(bias.begin() + row * target[3], target[3], wide.begin() + row * scores[3]);
  }
  return wide;
}

}  // namespace

// Q, K, V, attn_mask?, past_key?, past_value?, nonpad_kv_seqlen?, sinks? (SinkAttention) -> Y,
// present_key, present_value, scores
absl::Status OnnxAttentionRule(InferContext& context) {
  for (size_t i : {0, 1, 2}) RETURN_IF_ERROR(CheckType(context, i, kFloats));
  ASSIGN_OR_RETURN(
      const Problem<Size> p,
      ProblemOf<Size>(
          context.node(), [&](size_t i) -> const SizeList& { return context.shape(i); },
          [&](size_t i) { return context.has_input(i); }));
  const SizeList scores = {p.q.batch, p.q.heads, p.q.length, p.past + p.k.length};
  if (context.has_input(3)) {
    RETURN_IF_ERROR(CheckType(context, 3, kFloats | kBools));
    const SizeList target = MaskTarget(context.shape(3), scores);
    ASSIGN_OR_RETURN(const SizeList broadcast, BroadcastShapes(target, context.shape(3)));
    if (broadcast != target) {
      return absl::InvalidArgumentError(
          absl::StrCat("the mask does not broadcast to ", ShapeToString(scores)));
    }
  }
  if (context.has_input(6)) {
    RETURN_IF_ERROR(CheckType(context, 6, TypeBit(DType::kInt64)));
    if (context.shape(6) != SizeList{p.q.batch}) {
      return absl::InvalidArgumentError(absl::StrCat("the counts of keys have the shape ",
                                                     ShapeToString(context.shape(6)), ", not ",
                                                     ShapeToString(SizeList{p.q.batch})));
    }
    if (context.has_input(4)) {
      return absl::InvalidArgumentError("counts of keys and a past do not go together");
    }
  }
  RETURN_IF_ERROR(CheckSinks(context, SinkAttentionOp::kSinks, p.q.heads));
  SizeList out = {p.q.batch, p.q.heads, p.q.length, p.v.size};
  if (context.rank(0) == 3) out = {p.q.batch, p.q.length, p.q.heads * p.v.size};
  context.SetOutput(0, context.dtype(0), out);
  context.SetOutput(1, context.dtype(1), {p.k.batch, p.k.heads, scores[3], p.k.size});
  context.SetOutput(2, context.dtype(2), {p.v.batch, p.v.heads, scores[3], p.v.size});
  context.SetOutput(3, context.dtype(0), scores);
  return absl::OkStatus();
}

absl::Status OnnxAttentionKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(
      const Problem<int64_t> p,
      ProblemOf<int64_t>(
          context.node, [&](size_t i) -> const Shape& { return context.inputs[i].shape; },
          [&](size_t i) { return HasInput(context, i); }));
  const Attributes& attributes = context.node.attributes;
  const Shape scores = {p.q.batch, p.q.heads, p.q.length, p.past + p.k.length};
  const std::vector<float> q = FloatsOf(context.inputs[0]);
  const auto present = [&](size_t now, size_t past, const Heads<int64_t>& h) {
    const std::vector<float> values = FloatsOf(context.inputs[now]);
    return Present(context, ViewOf(values.data(), context.inputs[now].shape, h), past, h, p.past);
  };
  const std::vector<float> k = present(1, 4, p.k), v = present(2, 5, p.v);
  AttentionProblem a = AttentionOf(p, ViewOf(q.data(), context.inputs[0].shape, p.q), k, v);
  a.scale = attributes.Float("scale", 1 / std::sqrt(static_cast<float>(p.q.size)));
  a.softcap = attributes.Float("softcap", 0);
  a.nan_to_zero = true;
  if (HasInput(context, SinkAttentionOp::kSinks)) {
    a.sinks = context.inputs[SinkAttentionOp::kSinks].as<float>();
  }
  if (HasInput(context, 3)) a.bias = MaskBias(context.inputs[3], scores);
  MaskPositions(context, p, scores, a.bias);
  std::vector<float> seen;
  if (HasOutput(context, 3)) {
    seen.resize(NumElements(scores));
    a.scores_out = seen.data();
    a.scores_stage = static_cast<int>(attributes.Int("qk_matmul_output_mode", 0));
  }
  std::vector<float> y(context.outputs[0].num_elements());
  const bool dense_heads = context.outputs[0].shape.size() == 4;
  ComputeAttention(a, y.data(), a.heads * a.queries * a.size_v,
                   dense_heads ? a.queries * a.size_v : a.size_v,
                   dense_heads ? a.size_v : a.heads * a.size_v);
  RETURN_IF_ERROR(StoreFloats(y, context.outputs[0]));
  if (HasOutput(context, 1)) RETURN_IF_ERROR(StoreFloats(k, context.outputs[1]));
  if (HasOutput(context, 2)) RETURN_IF_ERROR(StoreFloats(v, context.outputs[2]));
  if (HasOutput(context, 3)) RETURN_IF_ERROR(StoreFloats(seen, context.outputs[3]));
  return absl::OkStatus();
}

namespace {

// query [B, S, H], key and value [B, L, H] or [B, N, L, D].
template <typename Number, typename F, typename G>
absl::StatusOr<Problem<Number>> MultiHeadProblem(const Node& node, F shape, G has) {
  const int64_t heads = node.attributes.Int("num_heads", 0);
  Problem<Number> p;
  if (shape(0).size() != 3) return absl::UnimplementedError("packed q, k, v are not supported");
  ASSIGN_OR_RETURN(p.q, HeadsOf(shape(0), heads, "query"));
  ASSIGN_OR_RETURN(p.k, HeadsOf(shape(1), heads, "key"));
  ASSIGN_OR_RETURN(p.v, HeadsOf(shape(2), heads, "value"));
  if (p.q.batch != p.k.batch || p.q.batch != p.v.batch || p.q.size != p.k.size ||
      p.k.heads != heads || p.v.heads != heads || p.k.length != p.v.length) {
    return absl::InvalidArgumentError("query, key and value do not agree");
  }
  ASSIGN_OR_RETURN(p.past, PastOf(p, 6, shape, has));
  return p;
}

}  // namespace

// query, key, value, bias?, key_padding_mask?, attention_bias?, past_key?, past_value? -> y,
// present_key, present_value
absl::Status MultiHeadAttentionRule(InferContext& context) {
  constexpr uint32_t kFloat = TypeBit(DType::kFloat32);
  for (size_t i : {0, 1, 2}) {
    if (!context.has_input(i)) {
      return absl::UnimplementedError("packed q, k, v are not supported");
    }
    RETURN_IF_ERROR(CheckType(context, i, kFloat));
  }
  for (size_t i = 6; i < context.num_inputs(); ++i) {
    if (!context.has_input(i)) continue;
    if (i > 7) return absl::UnimplementedError(absl::StrCat("input ", i, " is not supported"));
    RETURN_IF_ERROR(CheckType(context, i, kFloat));
  }
  ASSIGN_OR_RETURN(
      const Problem<Size> p,
      MultiHeadProblem<Size>(
          context.node(), [&](size_t i) -> const SizeList& { return context.shape(i); },
          [&](size_t i) { return context.has_input(i); }));
  const Size keys = p.past + p.k.length;
  const SizeList scores = {p.q.batch, p.q.heads, p.q.length, keys};
  if (context.has_input(3)) {
    RETURN_IF_ERROR(CheckType(context, 3, kFloat));
    if (context.rank(1) == 4 || context.rank(2) == 4) {
      return absl::UnimplementedError("a bias with key and value of 4 dims is not supported");
    }
    const Size width = p.q.heads * (p.q.size + p.k.size + p.v.size);
    if (context.shape(3) != SizeList{width}) {
      return absl::InvalidArgumentError(
          absl::StrCat("the bias does not have ", width, " elements"));
    }
  }
  if (context.has_input(4)) RETURN_IF_ERROR(CheckPaddingMask(context, 4, scores));
  if (context.has_input(5)) RETURN_IF_ERROR(CheckAttentionBias(context, 5, scores));
  context.SetOutput(0, DType::kFloat32, {p.q.batch, p.q.length, p.q.heads * p.v.size});
  context.SetOutput(1, DType::kFloat32, {p.k.batch, p.k.heads, keys, p.k.size});
  context.SetOutput(2, DType::kFloat32, {p.v.batch, p.v.heads, keys, p.v.size});
  return absl::OkStatus();
}

absl::Status MultiHeadAttentionKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(
      const Problem<int64_t> p,
      MultiHeadProblem<int64_t>(
          context.node, [&](size_t i) -> const Shape& { return context.inputs[i].shape; },
          [&](size_t i) { return HasInput(context, i); }));
  const Heads<int64_t> parts[3] = {p.q, p.k, p.v};
  std::vector<float> values[3];
  const float* bias = HasInput(context, 3) ? context.inputs[3].as<float>() : nullptr;
  for (int i = 0; i < 3; ++i) {
    values[i] = FloatsOf(context.inputs[i]);
    if (bias == nullptr) continue;
    const int64_t width = parts[i].heads * parts[i].size;
    for (size_t at = 0; at < values[i].size(); ++at) values[i][at] += bias[at % width];
    bias += width;
  }
  const auto view = [&](size_t i) {
    return ViewOf(values[i].data(), context.inputs[i].shape, parts[i]);
  };
  const std::vector<float> k = Present(context, view(1), 6, p.k, p.past);
  const std::vector<float> v = Present(context, view(2), 7, p.v, p.past);
  AttentionProblem a = AttentionOf(p, view(0), k, v);
  a.scale = ScaleOf(context.node.attributes, a.size);
  a.bias = MicrosoftBias(context, {a.batch, a.heads, a.queries, a.keys}, 4, 5, p.past);
  ComputeAttention(a, context.outputs[0].as<float>(), a.queries * a.heads * a.size_v, a.size_v,
                   a.heads * a.size_v);
  if (HasOutput(context, 1)) std::copy(k.begin(), k.end(), context.outputs[1].as<float>());
  if (HasOutput(context, 2)) std::copy(v.begin(), v.end(), context.outputs[2].as<float>());
  return absl::OkStatus();
}

}  // namespace reprise::ops

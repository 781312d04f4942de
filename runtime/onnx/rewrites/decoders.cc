#include "runtime/onnx/rewrites/decoders.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/steps.h"
#include "runtime/onnx/rewrites/quantized_cache.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/append_rows_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/ops/reduce/rotary_op.h"

namespace reprise {
namespace {

// Its inputs, by position.
enum : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLastPositions,  // one per sequence, among all of its keys
  kLength,         // length of the longest sequence, keys of the past included
  kCosine,
  kSine,
  kPositions,
  kAddedScores,
  kSinks,
  kKeyScale,  // where the cache is quantised
  kValueScale,
  kQueryNorm,  // factors of an RMS norm of each head, before it is turned
  kKeyNorm,
};

class GroupQuerySteps : public Steps {
 public:
  GroupQuerySteps(NodeDraft& draft, Graph& graph)
      : Steps(draft, graph),
        attributes_(draft.attributes),
        heads_(attributes_.Int("num_heads", 0)),
        kv_heads_(attributes_.Int("kv_num_heads", 0)),
        cells_(draft, graph, kv_heads_) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Check());
    const ValueId added = Dims(input(kQuery), 1, 2);  // rows of each sequence
    const ValueId length = AsNumbers(input(kLength), 1);
    const ValueId before = Before(added, length);
    ValueId q = input(kQuery), k = input(kKey), v = input(kValue);
    if (k == kNone) SplitJoined(q, k, v);
    if (input(kQueryNorm) != kNone) q = Normed(q, input(kQueryNorm), heads_);
    if (input(kKeyNorm) != kNone) k = Normed(k, input(kKeyNorm), kv_heads_);
    if (attributes_.Int("do_rotary", 0) != 0) {
      RETURN_IF_ERROR(Require({kCosine, kSine}));
      const ValueId positions = Positions(before, added);
      q = Turned(q, positions, heads_);
      k = Turned(k, positions, kv_heads_);
    }
    k = Behind(kPastKey, ByHead(k), before, length);
    v = Behind(kPastValue, ByHead(v), before, length);
    Attributes attributes = {
        {"is_causal", int64_t{1}}, {"kv_num_heads", kv_heads_}, {"q_num_heads", heads_}};
    for (const absl::string_view name : {"scale", "softcap"}) {
      const float value = attributes_.Float(name, 0);
      if (value != 0) attributes.Set(name, value);
    }
    if (const int64_t window = attributes_.Int("local_window_size", -1); window > 0) {
      attributes.Set("left_window_size", window - 1);
    }
    // Without a past of its own Attention gives back the keys and values that it was given.
    std::vector<ValueId> operands = {
        q, k, v, input(kAddedScores), kNone, kNone, Add(AddOp::kName, {before, added})};
    const ValueId sinks = Sinks();
    if (sinks != kNone) operands.push_back(sinks);
    return Become(sinks != kNone ? SinkAttentionOp::kName : OnnxAttentionOp::kName,
                  std::move(operands), std::move(attributes));
  }

 private:
  absl::Status Check() {
    RETURN_IF_ERROR(Require({kQuery, kLastPositions, kLength}));
    if (heads_ <= 0 || kv_heads_ <= 0 || heads_ % kv_heads_ != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("attributes 'num_heads' = ", heads_, " and 'kv_num_heads' = ", kv_heads_));
    }
    if ((input(kKey) == kNone) != (input(kValue) == kNone)) {
      return absl::InvalidArgumentError("key and value come together");
    }
    if ((input(kPastKey) == kNone) != (input(kPastValue) == kNone)) {
      return absl::InvalidArgumentError("past key and value come together");
    }
    if ((input(kQueryNorm) == kNone) != (input(kKeyNorm) == kNone)) {
      return absl::InvalidArgumentError("the factors of the norms of query and key come together");
    }
    if (attributes_.Int("causal", 1) == 0) {
      return absl::UnimplementedError("attribute 'causal' = 0 is not supported");
    }
    RETURN_IF_ERROR(cells_.Read(kKeyScale));
    for (const absl::string_view name : {"qk_output", "sliding_window_cache"}) {
      if (const int64_t value = attributes_.Int(name, 0); value > 0) {
        return absl::UnimplementedError(
            absl::StrCat("attribute '", name, "' = ", value, " is not supported"));
      }
    }
    for (size_t i = kKeyScale; i < draft_.inputs.size(); ++i) {
      const bool of_cells = i == kKeyScale || i == kValueScale;
      const bool known = i == kQueryNorm || i == kKeyNorm || (of_cells && cells_.exists());
      if (input(i) != kNone && !known) {
        return absl::UnimplementedError(absl::StrCat("input ", i, " is not supported"));
      }
    }
    return absl::OkStatus();
  }

  // [heads], kNone: none. A smooth softmax is that with a sink of 0.
  ValueId Sinks() {
    if (input(kSinks) != kNone) return ToFloat(input(kSinks));
    if (attributes_.Int("smooth_softmax", 0) <= 0) return kNone;
    return Floats("sinks", std::vector<float>(static_cast<size_t>(heads_), 0.0f));
  }

  // Returns each head of `rows` with its root mean square at 1, times `factors`.
  ValueId Normed(ValueId rows, ValueId factors, int64_t heads) {
    const ValueId normed =
        Add(RmsNormalizationOp::kName, {InHeads(rows, heads), factors},
            {{"axis", int64_t{-1}}, {"epsilon", attributes_.Float("qk_norm_epsilon", 1e-6f)}});
    return Add(ReshapeOp::kName, {normed, Int64s({0, 0, -1})});
  }

  // `value`, integers of any shape, as int64 [size], -1: as many as there are.
  ValueId AsNumbers(ValueId value, int64_t size) {
    return Cast(Add(ReshapeOp::kName, {value, Int64s({size})}), DType::kInt64);
  }

  // Returns how many keys of each sequence were there before, [batch]: none where all of them
  // are new, as in a prompt.
  ValueId Before(ValueId added, ValueId length) {
    const ValueId last = AsNumbers(input(kLastPositions), -1);
    const ValueId others = Add(SubOp::kName, {Add(AddOp::kName, {last, Int64s({1})}), added});
    // A row without keys is none of a request.
    const ValueId counted = Add(MaxOp::kName, {others, Int64s({0})});
    return Add(WhereOp::kName, {Add(EqualOp::kName, {added, length}), Int64s({0}), counted});
  }

  // [batch, rows, heads * size] as [batch, rows, heads, size], and by head.
  ValueId InHeads(ValueId value, int64_t heads) {
    return Add(ReshapeOp::kName, {value, Int64s({0, 0, heads, -1})});
  }
  ValueId ByHead(ValueId value) {
    return Add(TransposeOp::kName, {InHeads(value, kv_heads_)},
               {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }

  // Queries, keys and values lie side by side in the rows of q.
  void SplitJoined(ValueId& q, ValueId& k, ValueId& v) {
    const ValueId all = InHeads(q, heads_ + 2 * kv_heads_);
    const NodeId split = graph_.AddNode(
        SplitOp::kName, {all, Int64s({heads_, kv_heads_, kv_heads_})}, {{"axis", int64_t{2}}}, 3);
    const std::vector<ValueId> parts = graph_.node(split).outputs;
    ValueId* const joined[] = {&q, &k, &v};
    for (size_t i = 0; i < 3; ++i) {
      *joined[i] = Add(ReshapeOp::kName, {parts[i], Int64s({0, 0, -1})});
    }
  }

  // [batch, rows]
  ValueId Positions(ValueId before, ValueId added) {
    if (input(kPositions) != kNone) return input(kPositions);
    const ValueId behind =
        Add(RangeOp::kName, {Int64(0), Add(SqueezeOp::kName, {added}), Int64(1)});
    return Add(AddOp::kName, {Add(UnsqueezeOp::kName, {before, Int64s({1})}), behind});
  }

  // Rows turned by their positions.
  ValueId Turned(ValueId rows, ValueId positions, int64_t heads) {
    Attributes attributes = {{"interleaved", attributes_.Int("rotary_interleaved", 0)},
                             {"num_heads", heads}};
    // The width of the tables says how much of each head is turned.
    const std::optional<Shape>& table = graph_.value(input(kCosine)).shape;
    if (table.has_value() && !table->empty()) {
      attributes.Set("rotary_embedding_dim", 2 * table->back());
    }
    return Add(MicrosoftRotaryEmbeddingOp::kName, {rows, positions, input(kCosine), input(kSine)},
               std::move(attributes));
  }

  // Rows by head, appended to the past if there is one.
  ValueId Behind(size_t past, ValueId rows, ValueId before, ValueId length) {
    const auto append = [&](ValueId first, ValueId then) {
      return Add(AppendRowsOp::kName, {first, then, before, length});
    };
    if (!cells_.exists()) return input(past) == kNone ? rows : append(input(past), rows);
    const size_t which = past - kPastKey;
    const ValueId scale = cells_.Scale(kKeyScale + which);
    ValueId all = cells_.Nearest(rows, scale);
    if (input(past) != kNone) all = append(cells_.Unpacked(input(past)), all);
    draft_.made.resize(3, kNone);
    draft_.made[1 + which] = cells_.Packed(all);
    return Add(CastLikeOp::kName, {Add(MulOp::kName, {all, scale}), rows});
  }

  const Attributes attributes_;
  const int64_t heads_, kv_heads_;
  QuantizedCache cells_;
};

class JoinedOperands : public Steps {
 public:
  using Steps::Steps;

  absl::Status TakeApart() {
    if (input(kQuery) == kNone || input(kValue) != kNone) return absl::OkStatus();
    if (draft_.inputs.size() < 3) draft_.inputs.resize(3, kNone);
    // [batch, rows, heads, 3, size], or keys and values [batch, rows, heads, 2, size].
    if (input(kKey) == kNone) {
      Split(kQuery, 3, kQuery);
    } else {
      Split(kKey, 2, kKey);
    }
    return absl::OkStatus();
  }

 private:
  // Makes each of the `count` parts of input `from` an input of its own, from `first` on.
  void Split(size_t from, size_t count, size_t first) {
    const NodeId split =
        graph_.AddNode(SplitOp::kName, {input(from), Int64s(std::vector<int64_t>(count, 1))},
                       {{"axis", int64_t{3}}}, count);
    const std::vector<ValueId> parts = graph_.node(split).outputs;
    for (size_t i = 0; i < count; ++i) {
      draft_.inputs[first + i] = Add(ReshapeOp::kName, {parts[i], Int64s({0, 0, -1})});
    }
  }
};

}  // namespace

absl::Status MultiHeadAttentionTakenApart(NodeDraft& draft, Graph& graph) {
  return JoinedOperands(draft, graph).TakeApart();
}

absl::Status GroupQueryAttentionInSteps(NodeDraft& draft, Graph& graph) {
  return GroupQuerySteps(draft, graph).Run();
}

}  // namespace reprise

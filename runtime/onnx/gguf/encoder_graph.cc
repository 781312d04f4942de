#include "runtime/onnx/gguf/encoder_graph.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/gguf/graph_writer.h"
#include "runtime/onnx/gguf/rope_tables.h"

namespace reprise {
namespace {

using onnx::TensorProto;

constexpr char kBert[] = "bert", kNomic[] = "nomic-bert";
constexpr char kRows[] = "batch_size", kTokens[] = "sequence_length";

struct EncoderPlan {
  int64_t layers = 0, hidden = 0, heads = 0, context = 0;
  int64_t inner = 0;  // numbers between the matrices of a layer; 0: as many as they have
  float epsilon = 0;
  bool rotary = false;  // positions are rotated, and a gate precedes each inner layer
  double rope_base = 0;

  int64_t head_size() const { return hidden / heads; }
};

absl::StatusOr<EncoderPlan> ReadPlan(const GgufSettings& settings) {
  EncoderPlan plan = {.rotary = settings.architecture() == kNomic};
  ASSIGN_OR_RETURN(plan.layers, settings.Size("block_count"));
  ASSIGN_OR_RETURN(plan.hidden, settings.Size("embedding_length"));
  ASSIGN_OR_RETURN(plan.heads, settings.Size("attention.head_count"));
  ASSIGN_OR_RETURN(plan.context, settings.Size("context_length"));
  ASSIGN_OR_RETURN(plan.inner, settings.Size("feed_forward_length", 0));
  ASSIGN_OR_RETURN(const double epsilon,
                   settings.Positive("attention.layer_norm_epsilon", std::nullopt));
  plan.epsilon = static_cast<float>(epsilon);
  ASSIGN_OR_RETURN(plan.rope_base, settings.Positive("rope.freq_base", 10000.0));
  constexpr int64_t kMostLayers = 1000, kMostTable = int64_t{1} << 26;
  if (plan.layers > kMostLayers || plan.hidden % plan.heads != 0 || plan.head_size() % 2 != 0 ||
      plan.context > kMostTable / plan.head_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan.layers, " layers of ", plan.hidden, " numbers in ", plan.heads,
                     " heads, for ", plan.context, " positions, are no ", settings.architecture()));
  }
  ASSIGN_OR_RETURN(const std::optional<bool> causal,
                   settings.file().Bool(settings.Key("attention.causal")));
  const bool scaled = settings.Has("rope.scaling.type") || settings.Has("rope.scaling.factor");
  if (causal.value_or(false) || scaled || settings.Has("expert_count")) {
    return absl::UnimplementedError(
        absl::StrCat("member '",
                     settings.Key(causal.value_or(false) ? "attention.causal"
                                  : scaled               ? "rope.scaling.type"
                                                         : "expert_count"),
                     "' of an encoder is not supported"));
  }
  return plan;
}

class EncoderWriter {
 public:
  EncoderWriter(const GgufFile& file, const EncoderPlan& plan) : plan_(plan), w_(file) {}

  absl::StatusOr<onnx::ModelProto> Write() {
    w_.Input("input_ids", TensorProto::INT64, {kRows, kTokens});
    w_.Input("attention_mask", TensorProto::INT64, {kRows, kTokens});
    w_.Output("last_hidden_state", {kRows, kTokens, plan_.hidden});
    std::string x = Embedding();
    WriteMask();
    if (plan_.rotary) WriteTables();
    for (int64_t layer = 0; layer < plan_.layers && w_.status().ok(); ++layer) {
      const std::string at = absl::StrCat("blk.", layer, ".");
      x = Norm(w_.Node("Add", {x, Attention(at, x)}), absl::StrCat(at, "attn_output_norm"));
      x = Norm(w_.Node("Add", {x, FeedForward(at, x)}), absl::StrCat(at, "layer_output_norm"));
    }
    w_.NodeInto("Identity", {x}, {"last_hidden_state"});
    return w_.Finish();
  }

 private:
  std::string Norm(const std::string& x, const std::string& name) {
    return w_.Node(
        "LayerNormalization",
        {x, w_.Vector(name + ".weight", plan_.hidden), w_.Vector(name + ".bias", plan_.hidden)},
        {{"axis", int64_t{-1}}, {"epsilon", plan_.epsilon}});
  }

  // [1, tokens]: the positions of a row, as torch's exporters write them.
  std::string Positions() {
    std::vector<int64_t> all(static_cast<size_t>(plan_.context));
    std::iota(all.begin(), all.end(), 0);
    const std::string length =
        w_.Node("Gather", {w_.Node("Shape", {"input_ids"}), w_.Ints({1})}, {{"axis", int64_t{0}}});
    const std::string row = w_.Node("Unsqueeze", {w_.Ints(all), w_.Ints({0})});
    return w_.Node("Slice", {row, w_.Ints({0}), length, w_.Ints({1})});
  }

  std::string Embedding() {
    std::string x = w_.Lookup("token_embd.weight", "input_ids", plan_.hidden);
    if (w_.Has("token_types.weight")) {
      w_.Input("token_type_ids", TensorProto::INT64, {kRows, kTokens});
      x = w_.Node("Add", {x, w_.Lookup("token_types.weight", "token_type_ids", plan_.hidden)});
    }
    positions_ = Positions();
    if (!plan_.rotary) {
      x = w_.Node("Add", {x, w_.Lookup("position_embd.weight", positions_, plan_.hidden)});
    }
    return Norm(x, "token_embd_norm");
  }

  // Writes the number that is added to the scores of each key.
  void WriteMask() {
    const std::string keys =
        w_.Node("Cast", {w_.Node("Unsqueeze", {"attention_mask", w_.Ints({1, 2})})},
                {{"to", int64_t{TensorProto::FLOAT}}});
    const std::string hidden = w_.Node("Sub", {w_.Float(1), keys});
    mask_ = w_.Node("Mul", {hidden, w_.Float(std::numeric_limits<float>::lowest())});
  }

  void WriteTables() {
    const RopeTables tables =
        MakeRopeTables(plan_.context, plan_.head_size(), plan_.rope_base, RopeScaling(), {});
    const std::vector<int64_t> dims = {plan_.context, plan_.head_size() / 2};
    for (const auto& [values, table] :
         {std::pair(&tables.cosines, &cosines_), std::pair(&tables.sines, &sines_)}) {
      const std::string rows = w_.Node("Gather", {w_.Floats(*values, dims), positions_});
      // [1, 1, tokens, head size]: halves of a head have the same angles.
      *table = w_.Node("Unsqueeze",
                       {w_.Node("Concat", {rows, rows}, {{"axis", int64_t{-1}}}), w_.Ints({1})});
    }
  }

  std::string ByHead(const std::string& x) {
    const std::string heads =
        w_.Node("Reshape", {x, w_.Ints({0, 0, plan_.heads, plan_.head_size()})});
    return w_.Node("Transpose", {heads}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }

  // Heads turned by their positions: x * cos + rotated(x) * sin.
  std::string Turned(const std::string& x) {
    if (!plan_.rotary) return x;
    const std::string first =
        w_.Node("Split", {x}, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{2}}}, 2);
    const std::string second = w_.Result(1);
    const std::string rotated =
        w_.Node("Concat", {w_.Node("Neg", {second}), first}, {{"axis", int64_t{-1}}});
    return w_.Node("Add", {w_.Node("Mul", {x, cosines_}), w_.Node("Mul", {rotated, sines_})});
  }

  std::string Attention(const std::string& at, const std::string& x) {
    const int64_t hidden = plan_.hidden;
    std::string q, k, v;
    if (w_.Has(at + "attn_qkv.weight")) {
      const std::string all =
          w_.Linear(x, at + "attn_qkv", {.inputs = hidden, .outputs = 3 * hidden});
      q = w_.Node("Split", {all}, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{3}}}, 3);
      k = w_.Result(1);
      v = w_.Result(2);
    } else {
      const GraphWriter::Sizes sizes = {.inputs = hidden, .outputs = hidden};
      q = w_.Linear(x, at + "attn_q", sizes);
      k = w_.Linear(x, at + "attn_k", sizes);
      v = w_.Linear(x, at + "attn_v", sizes);
    }
    const std::string keys =
        w_.Node("Transpose", {Turned(ByHead(k))}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
    const std::string products = w_.Node("MatMul", {Turned(ByHead(q)), keys});
    const auto root = static_cast<float>(std::sqrt(static_cast<double>(plan_.head_size())));
    const std::string scores = w_.Node("Add", {w_.Node("Div", {products, w_.Float(root)}), mask_});
    const std::string shares = w_.Node("Softmax", {scores}, {{"axis", int64_t{-1}}});
    const std::string rows = w_.Node("Transpose", {w_.Node("MatMul", {shares, ByHead(v)})},
                                     {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    return w_.Linear(w_.Node("Reshape", {rows, w_.Ints({0, 0, hidden})}), at + "attn_output",
                     {.inputs = hidden, .outputs = hidden});
  }

  std::string FeedForward(const std::string& at, const std::string& x) {
    const int64_t inner = plan_.inner > 0 ? plan_.inner : w_.Rows(at + "ffn_up.weight");
    const GraphWriter::Sizes sizes = {.inputs = plan_.hidden, .outputs = inner};
    std::string y = w_.Linear(x, at + "ffn_up", sizes);
    if (plan_.rotary) {
      const std::string gate = w_.Linear(x, at + "ffn_gate", sizes);
      y = w_.Node("Mul", {w_.Node("Mul", {gate, w_.Node("Sigmoid", {gate})}), y});
    } else {
      y = w_.Node("Gelu", {y});
    }
    return w_.Linear(y, at + "ffn_down", {.inputs = inner, .outputs = plan_.hidden});
  }

  const EncoderPlan& plan_;
  GraphWriter w_;
  std::string positions_, mask_, cosines_, sines_;
};

}  // namespace

bool IsEncoder(absl::string_view architecture) {
  return architecture == kBert || architecture == kNomic;
}

absl::StatusOr<onnx::ModelProto> WriteEncoder(const GgufSettings& settings) {
  ASSIGN_OR_RETURN(const EncoderPlan plan, ReadPlan(settings));
  return EncoderWriter(settings.file(), plan).Write();
}

}  // namespace reprise

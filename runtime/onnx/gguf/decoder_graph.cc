#include "runtime/onnx/gguf/decoder_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/gguf/decoder_plan.h"
#include "runtime/onnx/gguf/graph_writer.h"

namespace reprise {
namespace {

using onnx::TensorProto;

constexpr char kBatch[] = "batch_size", kSequence[] = "sequence_length",
               kPast[] = "past_sequence_length", kTotal[] = "total_sequence_length";

class DecoderWriter {
 public:
  DecoderWriter(const GgufFile& file, const DecoderPlan& plan) : plan_(plan), w_(file) {}

  absl::StatusOr<onnx::ModelProto> Write() {
    w_.Input("input_ids", TensorProto::INT64, {kBatch, kSequence});
    w_.Input("attention_mask", TensorProto::INT64, {kBatch, kTotal});
    const int64_t vocabulary = w_.Rows("token_embd.weight");
    w_.Output("logits", {kBatch, kSequence, vocabulary});
    WriteLengths();
    WriteTables();
    std::string x =
        Times(w_.Lookup("token_embd.weight", "input_ids", plan_.hidden), plan_.embedding_scale);
    for (int64_t layer = 0; layer < plan_.layers && w_.status().ok(); ++layer) {
      x = Layer(layer, std::move(x));
    }
    const std::string normed = Norm(x, "output_norm.weight", plan_.hidden);
    const bool tied = !w_.Has("output.weight");
    const std::string scores = w_.Linear(normed, tied ? "token_embd" : "output",
                                         {.inputs = plan_.hidden, .outputs = vocabulary});
    const std::string scaled =
        plan_.logit_divisor == 1
            ? scores
            : w_.Node("Div", {scores, w_.Float(static_cast<float>(plan_.logit_divisor))});
    w_.NodeInto("Identity", {Capped(scaled, plan_.final_cap)}, {"logits"});
    return w_.Finish();
  }

 private:
  static std::string Block(int64_t layer, const char* name) {
    return absl::StrCat("blk.", layer, ".", name);
  }

  std::string Times(const std::string& x, double factor) {
    if (factor == 1) return x;
    return w_.Node("Mul", {x, w_.Float(static_cast<float>(factor))});
  }

  std::string Capped(const std::string& x, double cap) {
    if (cap == 0) return x;
    const std::string limit = w_.Float(static_cast<float>(cap));
    return w_.Node("Mul", {w_.Node("Tanh", {w_.Node("Div", {x, limit})}), limit});
  }

  std::string Norm(const std::string& x, const std::string& weight, int64_t size) {
    return w_.Node("RMSNormalization", {x, w_.Vector(weight, size)},
                   {{"axis", int64_t{-1}}, {"epsilon", plan_.epsilon}});
  }

  // Returns the same where the model has such a norm.
  std::string NormIfThere(const std::string& x, const std::string& weight) {
    return w_.Has(weight) ? Norm(x, weight, plan_.hidden) : x;
  }

  // Writes the position of the last key of each row, and how many keys the mask has.
  void WriteLengths() {
    const std::string one = w_.Ints({1});
    const std::string counted =
        w_.Node("ReduceSum", {"attention_mask", one}, {{"keepdims", int64_t{0}}});
    const int64_t to_int32 = TensorProto::INT32;
    last_ = w_.Node("Cast", {w_.Node("Sub", {counted, one})}, {{"to", to_int32}});
    const std::string sizes = w_.Node("Shape", {"attention_mask"});
    total_ = w_.Node("Cast", {w_.Node("Gather", {sizes, w_.Int(1)}, {{"axis", int64_t{0}}})},
                     {{"to", to_int32}});
  }

  void WriteTables() {
    if (!w_.status().ok()) return;
    std::vector<float> factors;
    if (!plan_.rope_factors.empty()) {
      factors = w_.VectorValues(plan_.rope_factors, plan_.rope_width / 2);
      for (const float factor : factors) {
        if (factor > 0) continue;
        w_.Fail(absl::InvalidArgumentError(
            absl::StrCat("tensor '", plan_.rope_factors, "' holds ", factor)));
        return;
      }
      if (factors.empty()) return;
    }
    w_.Ignore("rope_factors_long.weight");
    const auto add = [&](double base, const RopeScaling& scaling) {
      const RopeTables made =
          MakeRopeTables(plan_.context, plan_.rope_width, base, scaling, factors);
      const std::vector<int64_t> dims = {plan_.context, plan_.rope_width / 2};
      return std::pair(w_.Floats(made.cosines, dims), w_.Floats(made.sines, dims));
    };
    tables_ = add(plan_.rope_base, plan_.rope_scaling);
    window_tables_ =
        plan_.window_rope_base == 0 ? tables_ : add(plan_.window_rope_base, RopeScaling());
  }

  std::string Layer(int64_t layer, std::string x) {
    const std::string normed = Norm(x, Block(layer, "attn_norm.weight"), plan_.hidden);
    std::string y = Attention(layer, normed);
    y = NormIfThere(y, Block(layer, "post_attention_norm.weight"));
    x = w_.Node("Add", {x, Times(y, plan_.residual_scale)});
    y = FeedForward(layer, Norm(x, Block(layer, "ffn_norm.weight"), plan_.hidden));
    y = NormIfThere(y, Block(layer, "post_ffw_norm.weight"));
    return w_.Node("Add", {x, Times(y, plan_.residual_scale)});
  }

  std::string Attention(int64_t layer, const std::string& x) {
    const int64_t heads = plan_.heads, kv_heads = plan_.kv_heads, size = plan_.head_size;
    std::string q, k, v;
    if (w_.Has(Block(layer, "attn_qkv.weight"))) {
      q = w_.Linear(x, Block(layer, "attn_qkv"),
                    {.inputs = plan_.hidden, .outputs = (heads + 2 * kv_heads) * size});
    } else {
      q = w_.Linear(x, Block(layer, "attn_q"), {.inputs = plan_.hidden, .outputs = heads * size});
      const GraphWriter::Sizes sizes = {.inputs = plan_.hidden, .outputs = kv_heads * size};
      k = w_.Linear(x, Block(layer, "attn_k"), sizes);
      v = w_.Linear(x, Block(layer, "attn_v"), sizes);
    }
    std::vector<std::string> past, present;
    for (const char* kind : {"key", "value"}) {
      past.push_back(absl::StrCat("past_key_values.", layer, ".", kind));
      present.push_back(absl::StrCat("present.", layer, ".", kind));
      w_.Input(past.back(), TensorProto::FLOAT, {kBatch, kv_heads, kPast, size});
      w_.Output(present.back(), {kBatch, kv_heads, kTotal, size});
    }
    const int64_t window = plan_.windows[static_cast<size_t>(layer)];
    const auto& [cosines, sines] = window > 0 ? window_tables_ : tables_;
    std::vector<std::string> inputs = {q, k, v, past[0], past[1], last_, total_, cosines, sines};
    std::vector<GraphWriter::Setting> settings = {
        {"num_heads", heads},
        {"kv_num_heads", kv_heads},
        {"scale", static_cast<float>(plan_.attention_scale)},
        {"do_rotary", int64_t{1}},
        {"rotary_interleaved", int64_t{plan_.neighbours}}};
    if (window > 0) settings.emplace_back("local_window_size", window);
    if (plan_.attention_cap > 0) {
      settings.emplace_back("softcap", static_cast<float>(plan_.attention_cap));
    }
    if (w_.Has(Block(layer, "attn_q_norm.weight"))) {
      // Positions, added scores, sinks and scales of a quantised cache are left out.
      inputs.insert(inputs.end(), 5, "");
      inputs.push_back(w_.Vector(Block(layer, "attn_q_norm.weight"), size));
      inputs.push_back(w_.Vector(Block(layer, "attn_k_norm.weight"), size));
      settings.emplace_back("qk_norm_epsilon", plan_.epsilon);
    }
    const std::string attended = absl::StrCat("attended.", layer);
    w_.NodeInto("com.microsoft.GroupQueryAttention", inputs, {attended, present[0], present[1]},
                settings);
    return w_.Linear(attended, Block(layer, "attn_output"),
                     {.inputs = heads * size, .outputs = plan_.hidden});
  }

  std::string FeedForward(int64_t layer, const std::string& x) {
    std::string gate, up;
    int64_t inner = plan_.inner;
    if (w_.Has(Block(layer, "ffn_gate.weight"))) {
      if (inner == 0) inner = w_.Rows(Block(layer, "ffn_up.weight"));
      const GraphWriter::Sizes sizes = {.inputs = plan_.hidden, .outputs = inner};
      gate = w_.Linear(x, Block(layer, "ffn_gate"), sizes);
      up = w_.Linear(x, Block(layer, "ffn_up"), sizes);
    } else {
      // Both in one matrix, gates first.
      if (inner == 0) inner = w_.Rows(Block(layer, "ffn_up.weight")) / 2;
      const std::string both =
          w_.Linear(x, Block(layer, "ffn_up"), {.inputs = plan_.hidden, .outputs = 2 * inner});
      gate = w_.Node("Split", {both}, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{2}}}, 2);
      up = w_.Result(1);
    }
    const std::string active = plan_.tanh_gelu
                                   ? w_.Node("Gelu", {gate}, {{"approximate", std::string("tanh")}})
                                   : w_.Node("Mul", {gate, w_.Node("Sigmoid", {gate})});
    return w_.Linear(w_.Node("Mul", {active, up}), Block(layer, "ffn_down"),
                     {.inputs = inner, .outputs = plan_.hidden});
  }

  const DecoderPlan& plan_;
  GraphWriter w_;
  std::string last_, total_;
  std::pair<std::string, std::string> tables_, window_tables_;  // cosines, sines
};

}  // namespace

absl::StatusOr<onnx::ModelProto> WriteDecoder(const GgufSettings& settings) {
  ASSIGN_OR_RETURN(const DecoderPlan plan, ReadDecoderPlan(settings));
  return DecoderWriter(settings.file(), plan).Write();
}

}  // namespace reprise

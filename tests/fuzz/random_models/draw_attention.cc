// Attention in one op, and as exporters spell it.
#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/op_templates.h"
#include "tests/fuzz/random_models/signature.h"

namespace reprise::fuzz {
namespace {

// Returns a value [batch, length, width] of a fixed, even width, of small numbers.
ValueId PickTokens(ModelDraft& d) {
  const ValueId x = d.Pick([&](ValueId id) {
    return d.TypeOf(id) == DType::kFloat32 && d.RankOf(id) == 3 && d.FixedSize(id, 2) > 0 &&
           d.FixedSize(id, 2) % 4 == 0 && d.FixedSize(id, 2) <= 32;
  });
  if (x == kNone) return kNone;
  const auto [low, high] = d.RangeOf(x);
  return low > -8 && high < 8 ? x : d.Add("Tanh", {x});
}

// Returns a mask of the model's inputs that goes with `x`: [batch, length].
ValueId PickMask(ModelDraft& d, ValueId x) {
  return d.Pick([&](ValueId id) {
    return IsMaskName(d.graph().value(id).name) && d.RankOf(id) == 2 &&
           d.SizesOf(id, 0) == d.SizesOf(x, 0) && d.SizesOf(id, 1) == d.SizesOf(x, 1);
  });
}

ValueId Project(ModelDraft& d, ValueId x) {
  const int64_t width = d.FixedSize(x, 2);
  return d.chance().OneIn(3) ? x : d.Add("MatMul", {x, d.Weight({width, width}, width)});
}

// 0 where a key counts, `low` elsewhere: [batch, 1, 1, length].
ValueId AddedMask(ModelDraft& d, ValueId mask, double low) {
  const ValueId floats = d.Add("Cast", {mask}, {{"to", int64_t{1}}});
  const ValueId wide = d.Add("Unsqueeze", {floats, d.Ints({1, 2})});
  return d.Add("Mul", {d.Add("Sub", {d.Float(1), wide}), d.Float(low)});
}

bool Exported(ModelDraft& d, absl::string_view) {
  Chance& chance = d.chance();
  const ValueId x = PickTokens(d);
  if (x == kNone) return false;
  const int64_t width = d.FixedSize(x, 2);
  const auto heads = [&](ValueId v) {
    const ValueId split = d.Add("Reshape", {v, d.Ints({0, 0, 2, width / 2})});
    return d.Add("Transpose", {split}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  };
  const ValueId q = heads(Project(d, x)), k = heads(Project(d, x)), v = heads(Project(d, x));
  const ValueId turned = d.Add("Transpose", {k}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  ValueId scores = d.Add("MatMul", {q, turned});
  scores = d.Add("Mul", {scores, d.Float(0.5)});
  const ValueId mask = PickMask(d, x);
  if (mask != kNone && !chance.OneIn(4)) {
    scores = d.Add("Add", {scores, AddedMask(d, mask, chance.Of({-10000.0, -1e4}))});
  }
  if (chance.OneIn(4) && scores != kNone) {  // causal
    const ValueId shape = d.Add("Shape", {scores});
    const ValueId ones = d.Add("Expand", {d.Float(1), shape});
    const ValueId upper = d.Add("Trilu", {ones, d.Int(1)});
    scores = d.Add("Add", {scores, d.Add("Mul", {upper, d.Float(-10000)})});
  }
  const ValueId weights = d.Add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  const ValueId mixed = d.Add("MatMul", {weights, v});
  const ValueId back = d.Add("Transpose", {mixed}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  const ValueId y = d.Add("Reshape", {back, d.Ints({0, 0, width})});
  if (y == kNone || chance.OneIn(2)) return y != kNone;
  return d.Add("LayerNormalization", {d.Add("Add", {x, y}), d.Weight({width})}) != kNone;
}

bool Onnx(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId x = PickTokens(d);
  if (x == kNone) return false;
  ValueId mask = kNone;
  if (const ValueId m = PickMask(d, x); m != kNone && !chance.OneIn(4)) {
    mask = chance.OneIn(2)
               ? AddedMask(d, m, -10000)
               : d.Add("Unsqueeze", {d.Add("Cast", {m}, {{"to", int64_t{9}}}), d.Ints({1, 2})});
  }
  const ValueId other = chance.OneIn(4) ? PickTokens(d) : x;
  return d.Add(op, {Project(d, x), Project(d, other), Project(d, other), mask},
               {{"q_num_heads", int64_t{2}},
                {"kv_num_heads", int64_t{2}},
                {"is_causal", chance.OneIn(4) ? int64_t{1} : 0}}) != kNone;
}

// Returns the mask as onnxruntime's ops take it: int32, ones and zeros or the number of tokens.
ValueId MicrosoftMask(ModelDraft& d, ValueId x) {
  const ValueId mask = PickMask(d, x);
  if (mask == kNone || d.chance().OneIn(4)) return kNone;
  const ValueId whole = d.Add("Cast", {mask}, {{"to", int64_t{6}}});
  if (whole == kNone || d.chance().OneIn(2)) return whole;
  return d.Add("ReduceSum", {whole, d.Ints({1})}, {{"keepdims", int64_t{0}}});
}

bool MicrosoftAttention(ModelDraft& d, absl::string_view op) {
  const ValueId x = PickTokens(d);
  if (x == kNone) return false;
  const int64_t width = d.FixedSize(x, 2);
  const Attributes attributes = {{"num_heads", int64_t{2}},
                                 {"unidirectional", d.chance().OneIn(4) ? int64_t{1} : 0}};
  if (op == "com.microsoft.Attention") {
    return d.Add(
               op,
               {x, d.Weight({width, 3 * width}, width), d.Weight({3 * width}), MicrosoftMask(d, x)},
               attributes) != kNone;
  }
  const ValueId scale = d.Float(0.0625), zero = d.Numbers(DType::kUInt8, {}, 128, 128);
  const ValueId bytes = d.Add("QuantizeLinear", {x, scale, zero});
  const ValueId weight = d.Numbers(DType::kInt8, {width, 3 * width}, -60, 60);
  return bytes != kNone && d.Add(op,
                                 {bytes, weight, d.Weight({3 * width}), scale, d.Float(0.0125),
                                  MicrosoftMask(d, x), zero, d.Numbers(DType::kInt8, {}, 0, 0)},
                                 attributes) != kNone;
}

bool MultiHead(ModelDraft& d, absl::string_view op) {
  const ValueId x = PickTokens(d);
  if (x == kNone) return false;
  const int64_t width = d.FixedSize(x, 2);
  const ValueId bias = d.chance().OneIn(2) ? d.Weight({3 * width}) : kNone;
  return d.Add(op, {Project(d, x), Project(d, x), Project(d, x), bias, MicrosoftMask(d, x)},
               {{"num_heads", int64_t{2}}}) != kNone;
}

bool Rotary(ModelDraft& d, absl::string_view op) {
  const ValueId x = PickTokens(d);
  if (x == kNone) return false;
  const int64_t half = d.FixedSize(x, 2) / 2 / 2;  // one of two heads
  constexpr int64_t kPositions = 2048;
  const ValueId cosine = d.Numbers(DType::kFloat32, {kPositions, half}, -1, 1);
  const ValueId sine = d.Numbers(DType::kFloat32, {kPositions, half}, -1, 1);
  // 0, 1, 2 ... for each row.
  const ValueId sizes = d.Add("Shape", {x}, {{"start", int64_t{0}}, {"end", int64_t{2}}});
  const ValueId length = d.Add("Gather", {sizes, d.Int(1)});
  const ValueId line = d.Add("Range", {d.Int(0), length, d.Int(1)});
  const ValueId places = d.Add("Expand", {line, sizes});
  if (places == kNone) return false;
  const Attributes attributes = {{"num_heads", int64_t{2}}, {"interleaved", d.chance().Below(2)}};
  return (op == "RotaryEmbedding" ? d.Add(op, {x, cosine, sine, places}, attributes)
                                  : d.Add(op, {x, places, cosine, sine}, attributes)) != kNone;
}

bool EmbedNorm(ModelDraft& d, absl::string_view op) {
  const ValueId ids = d.Pick(
      [&](ValueId id) { return d.graph().value(id).name.starts_with("ids") && d.RankOf(id) == 2; });
  if (ids == kNone) return false;
  const ValueId narrow = d.Add("Cast", {ids}, {{"to", int64_t{6}}});
  return narrow != kNone && !d.AddNode(op,
                                       {narrow, kNone, d.Weight({16, 8}), d.Weight({2048, 8}),
                                        kNone, d.Weight({8}), d.Weight({8})},
                                       {{"epsilon", 1e-3f}}, 2)
                                 .empty();
}

constexpr OpTemplate kAttentionTemplates[] = {
    {"MatMul", Exported},
    {"Softmax", Exported},
    {"Attention", Onnx},
    {"com.microsoft.Attention", MicrosoftAttention},
    {"com.microsoft.QAttention", MicrosoftAttention},
    {"com.microsoft.MultiHeadAttention", MultiHead},
    {"RotaryEmbedding", Rotary},
    {"com.microsoft.RotaryEmbedding", Rotary},
    {"com.microsoft.EmbedLayerNormalization", EmbedNorm},
};

}  // namespace

absl::Span<const OpTemplate> AttentionTemplates() { return kAttentionTemplates; }

}  // namespace reprise::fuzz

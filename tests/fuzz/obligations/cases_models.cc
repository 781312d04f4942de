// Attention in one op, rotary tables, embeddings, and classic models.
#include <cstring>
#include <string>

#include "absl/types/span.h"
#include "runtime/ops/classical/class_scores.h"
#include "runtime/ops/classical/forest.h"
#include "runtime/ops/classical/svm_scores.h"
#include "tests/fuzz/obligations/row_draft.h"

namespace reprise::obligations {
namespace {

constexpr DType kFloat = DType::kFloat32;
constexpr int64_t kWidth = 4, kHeads = 2;

// Tokens [batch, length, width]; keys may have a length of their own.
struct Tokens {
  Dims queries, keys;
};

Tokens DrawTokens(RowDraft& d) {
  Tokens tokens;
  tokens.queries = d.DrawDims({kAny, kAny, kWidth});
  tokens.keys = tokens.queries;
  if (d.chance().OneIn(3)) tokens.keys[1] = {.symbol = kOther};
  return tokens;
}

ValueId OnnxAttention(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const auto [queries, keys] = DrawTokens(d);
  const ValueId q = d.Data(kFloat, queries);
  const ValueId k = d.Data(kFloat, keys), v = chance.OneIn(3) ? k : d.Data(kFloat, keys);
  ValueId mask = kNone;
  if (chance.OneIn(2)) {
    Dims dims = {queries[0], SizeDim(1), queries[1], keys[1]};
    if (chance.OneIn(2)) dims[2] = SizeDim(1);
    if (chance.OneIn(3)) dims.erase(dims.begin(), dims.begin() + 2);
    mask = chance.OneIn(2) ? d.Input("flag", DType::kBool, dims) : d.Data(kFloat, dims);
  }
  Attributes attributes = {{"q_num_heads", kHeads},
                           {"kv_num_heads", kHeads},
                           {"is_causal", chance.OneIn(3) ? int64_t{1} : 0}};
  if (chance.OneIn(6)) attributes.Set("softcap", 2.0f);
  const bool sinks = op == "reprise.SinkAttention";
  std::vector<ValueId> operands = {q, k, v, mask};
  if (sinks) {
    operands.resize(7, kNone);
    operands.push_back(d.Fixed(kFloat, {kHeads}));
  }
  return d.Add(op, operands, attributes);
}

// The mask as onnxruntime's ops take it: ones and zeros, or numbers of tokens.
ValueId MicrosoftMask(RowDraft& d, const Dims& keys) {
  if (d.chance().OneIn(3)) return kNone;
  if (d.chance().OneIn(2)) return d.Input("mask", DType::kInt32, {keys[0], keys[1]});
  return d.Bounded("some", keys[1], DType::kInt32, {keys[0]});
}

ValueId MicrosoftAttention(RowDraft& d, absl::string_view op) {
  const Dims dims = d.DrawDims({kAny, kAny, kWidth});
  const Attributes attributes = {{"num_heads", kHeads},
                                 {"unidirectional", d.chance().OneIn(3) ? int64_t{1} : 0}};
  const ValueId bias = d.Fixed(kFloat, {3 * kWidth}), mask = MicrosoftMask(d, dims);
  if (op == "com.microsoft.Attention") {
    return d.Add(op,
                 {d.Data(kFloat, dims), d.Fixed(kFloat, {kWidth, 3 * kWidth}, -1, 1), bias, mask},
                 attributes);
  }
  const DType bytes = d.chance().Of({DType::kUInt8, DType::kInt8});
  const auto number = [&](double value) { return d.Numbers(kFloat, {}, value, value); };
  return d.Add(op,
               {d.Data(bytes, dims), d.Numbers(DType::kInt8, {kWidth, 3 * kWidth}, -9, 9), bias,
                number(0.125), number(0.0625), mask, d.Numbers(bytes, {}, 3, 3),
                d.Numbers(DType::kInt8, {}, 0, 0)},
               attributes);
}

ValueId MultiHead(RowDraft& d, absl::string_view op) {
  const auto [queries, keys] = DrawTokens(d);
  const ValueId q = d.Data(kFloat, queries), k = d.Data(kFloat, keys), v = d.Data(kFloat, keys);
  ValueId bias = kNone;
  if (d.chance().OneIn(4)) {
    Dims dims = {queries[0], SizeDim(kHeads), queries[1], keys[1]};
    if (d.chance().OneIn(2)) dims[0] = SizeDim(1);
    bias = d.DataOrFixed(kFloat, dims);
  }
  return d.Add(op,
               {q, k, v, d.chance().OneIn(2) ? d.Fixed(kFloat, {3 * kWidth}) : kNone,
                MicrosoftMask(d, keys), bias},
               {{"num_heads", kHeads}, {"unidirectional", d.chance().OneIn(4) ? int64_t{1} : 0}});
}

ValueId Rotary(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const Dims dims = d.DrawDims({kAny, kAny, kWidth});
  constexpr int64_t kPositions = 16;
  const ValueId x = d.Data(kFloat, dims);
  const ValueId cosine = d.Fixed(kFloat, {kPositions, kWidth / kHeads / 2}),
                sine = d.Fixed(kFloat, {kPositions, kWidth / kHeads / 2});
  ValueId places = d.Bounded("index", SizeDim(kPositions), DType::kInt64, {dims[0], dims[1]});
  if (chance.OneIn(2)) {  // 0, 1, 2 ... for each row
    const ValueId sizes = d.Add("Shape", {x}, {{"start", int64_t{0}}, {"end", int64_t{2}}});
    const ValueId line = d.Add("Range", {d.Int(0), d.Add("Gather", {sizes, d.Int(1)}), d.Int(1)});
    places = line == kNone ? kNone : d.Add("Expand", {line, sizes});
  } else if (op == "com.microsoft.RotaryEmbedding" && chance.OneIn(3)) {
    places = d.Ints({chance.Below(3)});
  }
  if (places == kNone) return kNone;
  const Attributes attributes = {{"num_heads", kHeads}, {"interleaved", chance.Below(2)}};
  return op == "RotaryEmbedding" ? d.Add(op, {x, cosine, sine, places}, attributes)
                                 : d.Add(op, {x, places, cosine, sine}, attributes);
}

ValueId EmbedNorm(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const Dims dims = d.DrawDims({kAny, kAny});
  const auto ids = [&] { return d.Bounded("index", SizeDim(6), DType::kInt32, dims); };
  const auto table = [&] { return d.Fixed(kFloat, {16, kWidth}); };
  const bool types = chance.OneIn(2);
  const ValueId mask = chance.OneIn(3) ? d.Input("mask", DType::kInt32, dims) : kNone;
  return d.Add(op,
               {ids(), types ? ids() : kNone, table(), table(), types ? table() : kNone,
                d.Fixed(kFloat, {kWidth}), d.Fixed(kFloat, {kWidth}), mask},
               {{"epsilon", 1e-3f}}, chance.Between(1, 2));
}

ValueId TreeEnsemble(RowDraft& d, absl::string_view op) {
  // One tree of one question.
  const ops::ForestShape shape = {.features = d.chance().Between(1, 3),
                                  .trees = 1,
                                  .nodes = 3,
                                  .feature_bits = 8,
                                  .deepest = 1};
  const ops::ForestLayout layout(shape, /*is_double=*/false);
  std::vector<uint8_t> bytes(static_cast<size_t>(layout.bytes));
  const auto put = [&](int64_t at, const auto& value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  };
  put(layout.places, ops::TreePlace{.root = 0, .depth = 1, .target = 0, .unused = 0});
  put(layout.chunks + 4, int32_t{1});
  const auto leaf = static_cast<int32_t>(shape.nothing() - (1 << 8));  // the leaf itself is next
  put(layout.nodes, ops::PackedNode{.threshold = 0.25f, .word = 1 << 8});
  put(layout.nodes + 8, ops::PackedNode{.threshold = 2, .word = leaf});
  put(layout.nodes + 16, ops::PackedNode{.threshold = -1, .word = leaf});
  const ValueId forest = d.Constant(Tensor::FromVector(DType::kUInt8, {layout.bytes}, bytes));
  const ValueId x = d.Data(kFloat, d.DrawDims({kAny, d.chance().OneIn(4) ? kAny : shape.features}));
  return d.Add(op, {x, forest}, shape.ToAttributes());
}

ValueId ClassScores(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const int64_t classes = chance.Between(2, 3);
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < classes; ++i) labels.push_back(10 + i);
  const bool largest = chance.OneIn(2);
  const ops::ScoreRules rules = {
      .rule = largest ? ops::ScoreRule::kLargest : ops::ScoreRule::kValues,
      .post = chance.Of({ops::PostTransform::kNone, ops::PostTransform::kSoftmax,
                         ops::PostTransform::kLogistic, ops::PostTransform::kSoftmaxZero}),
      .labels = largest ? labels : std::vector<int64_t>{}};
  const Dims dims = chance.OneIn(2) ? d.DrawDims({kAny, chance.OneIn(6) ? kAny : classes})
                                    : d.DrawDims({kAny, chance.Between(1, 2), classes});
  return d.Add(op, {d.Data(dims.size() == 3 ? DType::kFloat64 : kFloat, dims)},
               rules.ToAttributes(), largest ? 2 : 1);
}

ValueId SvmScores(RowDraft& d, absl::string_view op) {
  const bool two = d.chance().OneIn(2);
  ops::SvmRules rules = {.labels =
                             two ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1, 2, 3}};
  if (d.chance().OneIn(2)) {
    rules.prob_a.assign(static_cast<size_t>(rules.pairs()), -0.5f);
    rules.prob_b.assign(static_cast<size_t>(rules.pairs()), 0.25f);
  }
  return d.Add(op, {d.Data(kFloat, d.DrawDims({kAny, rules.pairs()}))}, rules.ToAttributes(), 2);
}

ValueId Distances(RowDraft& d, absl::string_view op) {
  const DType dtype = d.chance().OneIn(4) ? DType::kFloat64 : kFloat;
  const Dims x = d.DrawDims({kAny, kAny});
  const Dims y = {x[1], d.chance().OneIn(3) ? x[0] : SizeDim(3)};
  return d.Add(op, {d.Data(dtype, x), d.DataOrFixed(dtype, y)},
               {{"power", d.chance().Between(1, 3)}});
}

ValueId CategoryIndex(RowDraft& d, absl::string_view op) {
  const DType dtype = d.chance().Of({kFloat, DType::kInt64});
  const ValueId x = d.Input("whole", dtype, d.AnyDims(1, 3));
  return d.Add(op,
               {x, d.Constant(OrdinaryContents("index.3.0", dtype, {SizeDim(3)}, {}, d.chance()))});
}

constexpr RowCase kModelCases[] = {
    {"Attention", OnnxAttention},
    {"reprise.SinkAttention", OnnxAttention},
    {"com.microsoft.Attention", MicrosoftAttention},
    {"com.microsoft.QAttention", MicrosoftAttention},
    {"com.microsoft.MultiHeadAttention", MultiHead},
    {"RotaryEmbedding", Rotary},
    {"com.microsoft.RotaryEmbedding", Rotary},
    {"com.microsoft.EmbedLayerNormalization", EmbedNorm},
    {"reprise.TreeEnsemble", TreeEnsemble},
    {"reprise.ClassScores", ClassScores},
    {"reprise.SvmScores", SvmScores},
    {"reprise.Distances", Distances},
    {"reprise.CategoryIndex", CategoryIndex},
};

}  // namespace

absl::Span<const RowCase> ModelCases() { return kModelCases; }

}  // namespace reprise::obligations

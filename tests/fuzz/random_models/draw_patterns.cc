// Whole layers as exporters write them: positions, biases by distance, masks of all kinds, pools
// over the tokens that count, the last token, rows of their own length.
#include <algorithm>

#include "runtime/graph/graph.h"
#include "runtime/ops/kit/onnx_types.h"
#include "tests/fuzz/random_models/op_templates.h"
#include "tests/fuzz/random_models/signature.h"
#include "tests/fuzz/random_models/size_numbers.h"

namespace reprise::fuzz {
namespace {

using ops::OnnxNumber;

const int64_t kFloat32 = OnnxNumber(DType::kFloat32), kInt64 = OnnxNumber(DType::kInt64),
              kInt32 = OnnxNumber(DType::kInt32), kBool = OnnxNumber(DType::kBool);
constexpr int64_t kPlaces = 700;  // rows of tables of positions

// Tokens [batch, length, width], and the mask of the model's inputs that goes with them, if any.
struct Tokens {
  ValueId x = kNone, mask = kNone;
  int64_t width = 0;
};

Tokens PickMaskedTokens(ModelDraft& d) {
  Tokens tokens;
  tokens.x = d.Pick([&](ValueId id) {
    return d.TypeOf(id) == DType::kFloat32 && d.RankOf(id) == 3 && d.FixedSize(id, 2) > 0 &&
           d.FixedSize(id, 2) % 4 == 0 && d.FixedSize(id, 2) <= 32;
  });
  if (tokens.x == kNone) return tokens;
  tokens.width = d.FixedSize(tokens.x, 2);
  const auto [low, high] = d.RangeOf(tokens.x);
  if (low < -8 || high > 8) tokens.x = d.Add("Tanh", {tokens.x});
  tokens.mask = d.Pick([&](ValueId id) {
    const Value& value = d.graph().value(id);
    return value.kind == Value::Kind::kInput && IsMaskName(value.name) && d.RankOf(id) == 2 &&
           d.SizesOf(id, 0) == d.SizesOf(tokens.x, 0) && d.SizesOf(id, 1) == d.SizesOf(tokens.x, 1);
  });
  return tokens;
}

// Returns the mask as numbers of a type, with further dims of 1 at `ones`.
ValueId MaskAs(ModelDraft& d, ValueId mask, int64_t type, const std::vector<int64_t>& ones = {}) {
  const ValueId cast = d.Add("Cast", {mask}, {{"to", type}});
  return ones.empty() ? cast : d.Add("Unsqueeze", {cast, d.Ints(ones)});
}

// 0, 1, 2 ... as many as `x` has places along `dim`.
ValueId PlacesOf(ModelDraft& d, ValueId x, int64_t dim) {
  return d.Add("Range", {d.Int(0), SizeOf(d, x, dim), d.Int(1)});
}

// Keys' places less queries', [length, length].
ValueId Distances(ModelDraft& d, ValueId x) {
  const ValueId line = PlacesOf(d, x, 1);
  const ValueId keys = d.Add("Unsqueeze", {line, d.Ints({0})});
  return d.Add("Sub", {keys, d.Add("Unsqueeze", {line, d.Ints({1})})});
}

// Returns numbers to add to scores of two heads [batch, 2, length, length].
ValueId ScoreBias(ModelDraft& d, ValueId x) {
  const ValueId far = Distances(d, x);
  if (d.chance().OneIn(2)) {  // a table of distances, cut off at its ends
    const int64_t reach = d.chance().Of({2, 8});
    const ValueId row =
        d.Add("Add", {d.Add("Clip", {far, d.Int(-reach), d.Int(reach)}), d.Int(reach)});
    const ValueId bias = d.Add("Gather", {d.Weight({2 * reach + 1, 2}), row});
    return d.Add("Transpose", {bias}, {{"perm", std::vector<int64_t>{2, 0, 1}}});
  }
  const ValueId floats = d.Add("Abs", {d.Add("Cast", {far}, {{"to", kFloat32}})});
  return d.Add("Mul", {floats, d.Numbers(DType::kFloat32, {2, 1, 1}, -0.5, -0.125)});
}

// Returns which keys a query may see by where they lie: bool [length, length].
ValueId Visible(ModelDraft& d, ValueId x) {
  const ValueId far = Distances(d, x);
  if (d.chance().OneIn(2)) return d.Add("LessOrEqual", {far, d.Int(0)});  // causal
  const ValueId near = d.Add("Less", {d.Add("Abs", {far}), d.Int(d.chance().Of({2, 5}))});
  if (d.chance().OneIn(2)) return near;
  return d.Add("And", {near, d.Add("LessOrEqual", {far, d.Int(0)})});
}

bool Attention(ModelDraft& d, absl::string_view) {
  Chance& chance = d.chance();
  const auto [x, mask, width] = PickMaskedTokens(d);
  if (x == kNone) return false;
  const auto heads = [&, width = width](ValueId v, std::vector<int64_t> order) {
    const ValueId projected = d.Add("MatMul", {v, d.Weight({width, width}, width)});
    const ValueId split = d.Add("Reshape", {projected, d.Ints({0, 0, 2, width / 2})});
    return d.Add("Transpose", {split}, {{"perm", std::move(order)}});
  };
  ValueId scores = d.Add("MatMul", {heads(x, {0, 2, 1, 3}), heads(x, {0, 2, 3, 1})});
  if (chance.OneIn(2)) scores = d.Add("Add", {scores, ScoreBias(d, x)});
  const double low = chance.Of({-10000.0, -1e9, -3.4e38});
  ValueId seen = kNone;
  if (mask != kNone && !chance.OneIn(4)) seen = MaskAs(d, mask, kBool, {1, 2});
  if (chance.OneIn(2)) {
    const ValueId visible = Visible(d, x);
    seen = seen == kNone ? visible : d.Add("And", {seen, visible});
  }
  const ValueId weights = d.WithLowNumbers([&] {
    if (seen != kNone && chance.OneIn(2)) {
      scores = d.Add("Where", {seen, scores, d.Float(low)});
    } else if (seen != kNone) {
      const ValueId hidden = d.Add("Cast", {d.Add("Not", {seen})}, {{"to", kFloat32}});
      scores = d.Add("Add", {scores, d.Add("Mul", {hidden, d.Float(std::max(low, -1e9))})});
    }
    return d.Add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  });
  const ValueId mixed = d.Add("MatMul", {weights, heads(x, {0, 2, 1, 3})});
  const ValueId back = d.Add("Transpose", {mixed}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  return d.Add("Reshape", {back, d.Ints({0, 0, width})}) != kNone;
}

// A table of positions, looked up by place or by the number of tokens up to here that count.
bool Positions(ModelDraft& d, absl::string_view) {
  const auto [x, mask, width] = PickMaskedTokens(d);
  if (x == kNone) return false;
  ValueId places = PlacesOf(d, x, 1);
  if (mask != kNone && d.chance().OneIn(2)) {
    const ValueId ones = MaskAs(d, mask, kInt64);
    places = d.Add("CumSum", {ones, d.Int(1)});
    places = d.chance().OneIn(2) ? d.Add("Mul", {places, ones})
                                 : d.Add("Max", {d.Add("Sub", {places, d.Int(1)}), d.Int(0)});
  }
  const ValueId rows = d.Add("Gather", {d.Weight({kPlaces, width}), places});
  return d.Add("Add", {x, rows}) != kNone;
}

// Pairs of halves turned by an angle that the place decides.
bool Turned(ModelDraft& d, absl::string_view) {
  const auto [x, mask, width] = PickMaskedTokens(d);
  if (x == kNone) return false;
  const ValueId floats = d.Add("Cast", {PlacesOf(d, x, 1)}, {{"to", kFloat32}});
  const ValueId speeds = d.Numbers(DType::kFloat32, {1, width / 2}, 0.01, 1);
  const ValueId half = d.Add("Mul", {d.Add("Unsqueeze", {floats, d.Ints({1})}), speeds});
  const ValueId angle = d.Add("Concat", {half, half}, {{"axis", int64_t{-1}}});
  const std::vector<ValueId> parts =
      d.AddNode("Split", {x, d.Ints({width / 2, width / 2})}, {{"axis", int64_t{-1}}}, 2);
  if (parts.empty() || angle == kNone) return false;
  const ValueId turned =
      d.Add("Concat", {d.Add("Neg", {parts[1]}), parts[0]}, {{"axis", int64_t{-1}}});
  return d.Add("Add", {d.Add("Mul", {x, d.Add("Cos", {angle})}),
                       d.Add("Mul", {turned, d.Add("Sin", {angle})})}) != kNone;
}

// One vector a row, of the tokens that count.
bool Pooled(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const auto [x, mask, width] = PickMaskedTokens(d);
  if (x == kNone || mask == kNone) return false;
  const ValueId wide = MaskAs(d, mask, kFloat32, {-1});
  const Attributes gone = {{"keepdims", int64_t{0}}}, kept = {{"keepdims", int64_t{1}}};
  if (op == "Softmax") {  // weights that the tokens have themselves
    ValueId score = d.Add("MatMul", {d.Add("Tanh", {x}), d.Weight({width, 1}, width)});
    const ValueId weights = d.WithLowNumbers([&] {
      const ValueId hidden = d.Add("Equal", {wide, d.Float(0)});
      score = d.Add("Where", {hidden, d.Float(-1e9), score});
      return d.Add("Softmax", {score}, {{"axis", int64_t{1}}});
    });
    return d.Add("ReduceSum", {d.Add("Mul", {x, weights}), d.Ints({1})}, gone) != kNone;
  }
  if (op == "ReduceMax") {
    const Attributes& form = chance.OneIn(2) ? gone : kept;
    return d.WithLowNumbers([&, tokens = x, counts = mask] {
      const ValueId shown = d.Add("Where", {MaskAs(d, counts, kBool, {-1}), tokens, d.Float(-1e9)});
      return d.Add(op, {shown, d.Ints({1})}, form);
    }) != kNone;
  }
  const ValueId sum = d.Add("ReduceSum", {d.Add("Mul", {x, wide}), d.Ints({1})}, gone);
  if (op == "ReduceL2") {  // a vector of length one
    const ValueId length = d.Add(op, {sum, d.Ints({-1})}, kept);
    return d.Add("Div", {sum, d.Add("Max", {length, d.Float(1e-3)})}) != kNone;
  }
  const ValueId all = d.Add("Expand", {wide, d.Add("Shape", {x})});
  const ValueId count = d.Add("Clip", {d.Add("ReduceSum", {all, d.Ints({1})}, gone), d.Float(1)});
  const ValueId root = chance.OneIn(3) ? d.Add("Sqrt", {count}) : count;
  return d.Add("Div", {sum, root}) != kNone;
}

// The last token that counts, or the one with the largest id.
bool OneToken(ModelDraft& d, absl::string_view op) {
  const auto [x, mask, width] = PickMaskedTokens(d);
  if (x == kNone) return false;
  const Attributes gone = {{"keepdims", int64_t{0}}};
  ValueId place = kNone;
  if (op == "ArgMax") {
    const std::vector<int64_t> rows = d.SizesOf(x, 0), lengths = d.SizesOf(x, 1);
    const ValueId ids = d.Pick([&](ValueId id) {
      return d.graph().value(id).name.starts_with("ids") && d.RankOf(id) == 2 &&
             d.SizesOf(id, 0) == rows && d.SizesOf(id, 1) == lengths;
    });
    if (ids == kNone) return false;
    place = d.Add(op, {ids}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  } else {
    if (mask == kNone) return false;
    const ValueId count = d.Add("ReduceSum", {MaskAs(d, mask, kInt64), d.Ints({1})}, gone);
    place = d.Add("Sub", {count, d.Int(1)});
    if (d.chance().OneIn(2)) place = d.Add("Max", {place, d.Int(0)});
  }
  if (d.chance().OneIn(2)) {
    const ValueId column = d.Add("Unsqueeze", {place, d.Ints({-1})});
    return d.Add("GatherND", {x, column}, {{"batch_dims", int64_t{1}}}) != kNone;
  }
  const ValueId rows = d.Add("Unsqueeze", {PlacesOf(d, x, 0), d.Ints({-1})});
  const ValueId both =
      d.Add("Concat", {rows, d.Add("Unsqueeze", {place, d.Ints({-1})})}, {{"axis", int64_t{-1}}});
  return d.Add("GatherND", {x, both}) != kNone;
}

// Rows that a mask says the length of.
bool RowsOfLength(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const auto [x, mask, width] = PickMaskedTokens(d);
  if (x == kNone || mask == kNone) return false;
  const ValueId lengths =
      d.Add("ReduceSum", {MaskAs(d, mask, kInt32), d.Ints({1})}, {{"keepdims", int64_t{0}}});
  const std::vector<int64_t> swap = {1, 0, 2};
  const ValueId turned = d.Add("Transpose", {x}, {{"perm", swap}});
  if (op == "ReverseSequence") {
    const ValueId long_lengths = d.Add("Cast", {lengths}, {{"to", kInt64}});
    return d.Add(op, {x, long_lengths}, {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}}) !=
           kNone;
  }
  constexpr int64_t kHidden = 4;
  const int64_t gates = op == "LSTM" ? 4 : 3;
  const std::string direction = chance.Of({"forward", "reverse", "bidirectional"});
  const int64_t ways = direction == "bidirectional" ? 2 : 1;
  const std::vector<ValueId> results =
      d.AddNode(op,
                {turned, d.Weight({ways, gates * kHidden, width}, width),
                 d.Weight({ways, gates * kHidden, kHidden}, kHidden), kNone, lengths},
                {{"hidden_size", kHidden}, {"direction", direction}}, 2);
  if (results.empty()) return false;
  if (chance.OneIn(2)) return d.Add("Transpose", {results[1]}, {{"perm", swap}}) != kNone;
  const ValueId whole =
      d.Add("Transpose", {results[0]}, {{"perm", std::vector<int64_t>{2, 0, 1, 3}}});
  return d.Add("Reshape", {whole, d.Ints({0, 0, ways * kHidden})}) != kNone;
}

// A convolution over tokens, with the ones that do not count made zeros before it or after it.
bool MaskedConv(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const auto [x, mask, width] = PickMaskedTokens(d);
  if (x == kNone || mask == kNone) return false;
  const ValueId wide = MaskAs(d, mask, kFloat32, {-1});
  const std::vector<int64_t> swap = {0, 2, 1};
  const ValueId shown = chance.OneIn(4) ? x : d.Add("Mul", {x, wide});
  const ValueId planes = d.Add("Transpose", {shown}, {{"perm", swap}});
  const int64_t back = chance.Of({1, 1, 2});
  const ValueId made = d.Add(op, {planes, d.Weight({8, width, 3}, 3 * width)},
                             {{"pads", std::vector<int64_t>{back, 2 - back}}});
  const ValueId turned = d.Add("Transpose", {made}, {{"perm", swap}});
  if (turned == kNone || chance.OneIn(3)) return turned != kNone;
  return d.Add("Mul", {turned, wide}) != kNone;
}

// The label of each token, or the likeliest few, and how likely they are.
bool Labels(ModelDraft& d, absl::string_view op) {
  const auto [x, mask, width] = PickMaskedTokens(d);
  if (x == kNone) return false;
  const ValueId logits = d.Add("MatMul", {x, d.Weight({width, 5}, width)});
  if (op == "ArgMax") {
    return d.Add(op, {logits}, {{"axis", int64_t{-1}}, {"keepdims", int64_t{0}}}) != kNone;
  }
  const ValueId likely = d.Add(std::string(d.chance().Of({"Softmax", "LogSoftmax"})), {logits},
                               {{"axis", int64_t{-1}}});
  return !d.AddNode(op, {likely, d.Ints({2})}, {{"axis", int64_t{-1}}}, 2).empty();
}

constexpr OpTemplate kPatternTemplates[] = {
    {"Softmax", Attention}, {"Softmax", Attention},
    {"Softmax", Attention}, {"Gather", Positions},
    {"Cos", Turned},        {"Softmax", Pooled},
    {"ReduceMax", Pooled},  {"ReduceL2", Pooled},
    {"ReduceSum", Pooled},  {"ArgMax", OneToken},
    {"GatherND", OneToken}, {"LSTM", RowsOfLength},
    {"GRU", RowsOfLength},  {"Conv", MaskedConv},
    {"ArgMax", Labels},     {"ReverseSequence", RowsOfLength},
    {"TopK", Labels},
};

}  // namespace

absl::Span<const OpTemplate> PatternTemplates() { return kPatternTemplates; }

}  // namespace reprise::fuzz

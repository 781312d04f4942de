// Reductions, sums along an axis, softmaxes, norms, and the forms that masks give them.
#include <algorithm>

#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/op_templates.h"
#include "tests/fuzz/random_models/signature.h"

namespace reprise::fuzz {
namespace {

bool Reduce(ModelDraft& d, absl::string_view op) {
  ValueId x = d.PickFloat(1);
  if (x == kNone) return false;
  Chance& chance = d.chance();
  if (op == "ReduceLogSum") x = d.Add("Add", {d.Add("Abs", {x}), d.Float(0.5)});
  if (op == "ReduceProd") x = d.Add("Clip", {x, d.Float(-1), d.Float(1)});
  if (x == kNone) return false;
  std::vector<int64_t> axes = {chance.Below(d.RankOf(x))};
  if (d.RankOf(x) > 2 && chance.OneIn(4)) axes = {0, d.RankOf(x) - 1};
  const ValueId operand = chance.OneIn(10) ? kNone : d.Ints(axes);
  return d.Add(op, {x, operand}, {{"keepdims", chance.Below(2)}}) != kNone;
}

// The mean, sum or largest of those positions that a mask keeps.
bool MaskedReduce(ModelDraft& d, absl::string_view op) {
  const ValueId mask = d.Pick([&](ValueId id) {
    return d.graph().value(id).kind == Value::Kind::kInput && d.RankOf(id) == 2 &&
           IsMaskName(d.graph().value(id).name);
  });
  const ValueId x = d.PickFloat(3, 3);
  if (mask == kNone || x == kNone) return false;
  const ValueId floats = d.Add("Cast", {mask}, {{"to", int64_t{1}}});
  const ValueId wide = d.Add("Unsqueeze", {floats, d.Ints({-1})});
  ValueId kept = d.Add("Mul", {x, wide});
  if (op == "ReduceMax") {
    const ValueId hidden = d.Add("Mul", {d.Add("Sub", {d.Float(1), wide}), d.Float(-10000)});
    kept = hidden == kNone ? kNone : d.Add("Add", {x, hidden});
  }
  if (kept == kNone) return false;
  const ValueId sum = d.Add(op == "ReduceMax" ? "ReduceMax" : "ReduceSum", {kept, d.Ints({1})},
                            {{"keepdims", int64_t{0}}});
  if (op != "ReduceMean") return sum != kNone;
  const ValueId count = d.Add("ReduceSum", {floats, d.Ints({1})}, {{"keepdims", int64_t{1}}});
  return d.Add("Div", {sum, d.Add("Max", {count, d.Float(1)})}) != kNone;
}

bool Arg(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1);
  if (x == kNone) return false;
  Chance& chance = d.chance();
  return d.Add(op, {x},
               {{"axis", chance.Below(d.RankOf(x))},
                {"keepdims", chance.Below(2)},
                {"select_last_index", chance.Below(2)}}) != kNone;
}

bool TopK(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1);
  if (x == kNone) return false;
  Chance& chance = d.chance();
  const int64_t axis = chance.Below(d.RankOf(x));
  const int64_t k = chance.Between(1, std::clamp<int64_t>(d.SmallestSize(x, axis), 1, 3));
  return !d.AddNode(op, {x, d.Ints({k})}, {{"axis", axis}, {"largest", chance.Below(2)}}, 2)
              .empty();
}

bool Cumulative(ModelDraft& d, absl::string_view op) {
  ValueId x = d.chance().OneIn(4) ? d.PickInteger() : d.PickFloat(1);
  if (op == "CumProd" && x != kNone) x = d.Add("Clip", {d.PickFloat(1), d.Float(-1), d.Float(1)});
  if (x == kNone || d.RankOf(x) < 1) return false;
  Chance& chance = d.chance();
  return d.Add(op, {x, d.Int(chance.Below(d.RankOf(x)))},
               {{"exclusive", chance.Below(2)}, {"reverse", chance.OneIn(4) ? 1 : int64_t{0}}}) !=
         kNone;
}

bool Dft(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1, 3);
  if (x == kNone) return false;
  const ValueId real = d.Add("Unsqueeze", {x, d.Ints({-1})});
  if (real == kNone) return false;
  return d.Add(op, {real, kNone, d.Int(d.chance().Below(d.RankOf(x)))},
               {{"onesided", d.chance().Below(2)}}) != kNone;
}

bool Softmax(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1);
  if (x == kNone) return false;
  return d.Add(op, {x}, {{"axis", d.chance().Of({int64_t{-1}, d.chance().Below(d.RankOf(x))})}}) !=
         kNone;
}

// Softmax(x + (1 - mask) * -10000) along the mask's axis.
bool MaskedSoftmax(ModelDraft& d, absl::string_view op) {
  const ValueId mask =
      d.Pick([&](ValueId id) { return IsMaskName(d.graph().value(id).name) && d.RankOf(id) == 2; });
  const ValueId x = d.PickFloat(2, 4);
  if (mask == kNone || x == kNone) return false;
  ValueId hidden = d.Add("Cast", {mask}, {{"to", int64_t{1}}});
  hidden = d.Add("Mul", {d.Add("Sub", {d.Float(1), hidden}), d.Float(-10000)});
  if (hidden == kNone) return false;
  for (int64_t rank = 2; rank < d.RankOf(x); ++rank)
    hidden = d.Add("Unsqueeze", {hidden, d.Ints({1})});
  const ValueId scores = hidden == kNone ? kNone : d.Add("Add", {x, hidden});
  return scores != kNone && d.Add(op, {scores}, {{"axis", int64_t{-1}}}) != kNone;
}

bool LastDimNorm(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1);
  if (x == kNone) return false;
  const int64_t width = d.FixedSize(x, d.RankOf(x) - 1);
  if (width < 2) return false;
  const Attributes attributes = {{"axis", int64_t{-1}}, {"epsilon", 1e-3f}};
  if (op == "RMSNormalization") return d.Add(op, {x, d.Weight({width})}, attributes) != kNone;
  return d.Add(op, {x, d.Weight({width}), d.chance().OneIn(2) ? d.Weight({width}) : kNone},
               attributes, d.chance().OneIn(4) ? 3 : 1) != kNone;
}

bool SkipNorm(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(3, 3);
  if (x == kNone) return false;
  const int64_t width = d.FixedSize(x, 2);
  if (width < 2) return false;
  const ValueId skip = d.Add("Tanh", {x});
  return skip != kNone && d.Add(op, {x, skip, d.Weight({width})}, {{"epsilon", 1e-3f}}) != kNone;
}

bool ChannelNorm(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(3, 4);
  if (x == kNone) return false;
  const int64_t channels = d.FixedSize(x, 1);
  if (channels < 1) return false;
  const Shape shape = {channels};
  if (op == "LRN") {
    return d.Add(op, {x},
                 {{"size", int64_t{3}}, {"alpha", 0.5f}, {"beta", 0.75f}, {"bias", 1.0f}}) != kNone;
  }
  if (op == "BatchNormalization") {
    return d.Add(op, {x, d.Weight(shape), d.Weight(shape), d.Weight(shape),
                      d.Numbers(DType::kFloat32, shape, 0.5, 2)}) != kNone;
  }
  Attributes attributes = {{"epsilon", 1e-3f}};
  if (op == "GroupNormalization") {
    attributes.Set("num_groups", channels % 2 == 0 ? int64_t{2} : int64_t{1});
  }
  return d.Add(op, {x, d.Weight(shape), d.Weight(shape)}, attributes) != kNone;
}

constexpr OpTemplate kReduceTemplates[] = {
    {"ReduceSum", Reduce},
    {"ReduceMean", Reduce},
    {"ReduceProd", Reduce},
    {"ReduceL1", Reduce},
    {"ReduceL2", Reduce},
    {"ReduceSumSquare", Reduce},
    {"ReduceLogSum", Reduce},
    {"ReduceLogSumExp", Reduce},
    {"ReduceMax", Reduce},
    {"ReduceMin", Reduce},
    {"ReduceSum", MaskedReduce},
    {"ReduceMean", MaskedReduce},
    {"ReduceMax", MaskedReduce},
    {"ArgMax", Arg},
    {"ArgMin", Arg},
    {"TopK", TopK},
    {"CumSum", Cumulative},
    {"CumProd", Cumulative},
    {"DFT", Dft},
    {"Softmax", Softmax},
    {"Softmax", MaskedSoftmax},
    {"LogSoftmax", Softmax},
    {"Hardmax", Softmax},
    {"LayerNormalization", LastDimNorm},
    {"LayerNormalization", LastDimNorm},
    {"RMSNormalization", LastDimNorm},
    {"com.microsoft.SkipLayerNormalization", SkipNorm},
    {"com.microsoft.SkipSimplifiedLayerNormalization", SkipNorm},
    {"BatchNormalization", ChannelNorm},
    {"InstanceNormalization", ChannelNorm},
    {"GroupNormalization", ChannelNorm},
    {"LRN", ChannelNorm},
};

}  // namespace

absl::Span<const OpTemplate> ReduceTemplates() { return kReduceTemplates; }

}  // namespace reprise::fuzz

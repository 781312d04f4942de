// Nodes that depend on sizes: branches, choices, counts, positions, lengths, factors.
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/onnx_types.h"
#include "tests/fuzz/random_models/op_templates.h"
#include "tests/fuzz/random_models/size_numbers.h"

namespace reprise::fuzz {
namespace {

// Returns `x` with positions along some axis seeing each other, of the same shape.
ValueId Mix(ModelDraft& d, ValueId x) {
  Chance& chance = d.chance();
  const int64_t rank = d.RankOf(x);
  if (rank < 1) return d.Add("Neg", {x});
  const int64_t dim = chance.Below(rank);
  switch (chance.Below(6)) {
    case 0:
      return d.Add("Softmax", {x}, {{"axis", dim}});
    case 1:
      return d.Add("CumSum", {x, d.Int(dim)}, {{"reverse", chance.Below(2)}});
    case 2:
      return d.Add("Slice", {x, d.Ints({-1}), d.Ints({INT64_MIN}), d.Ints({dim}), d.Ints({-1})});
    default: {
      const std::string op = chance.Of({"ReduceMean", "ReduceMax", "ReduceSum", "ReduceMin"});
      const ValueId all = d.Add(op, {x, d.Ints({dim})}, {{"keepdims", int64_t{1}}});
      return d.Add(std::string(chance.Of({"Sub", "Mul", "Add"})), {x, all});
    }
  }
}

// Something made of `x`, often of another form.
ValueId Other(ModelDraft& d, ValueId x) {
  Chance& chance = d.chance();
  const int64_t rank = d.RankOf(x);
  if (rank >= 1 && chance.OneIn(4)) {
    const ValueId all = d.Add(std::string(chance.Of({"ReduceMean", "ReduceMax"})),
                              {x, d.Ints({chance.Below(rank)})}, {{"keepdims", chance.Below(2)}});
    return all;
  }
  if (rank >= 1 && chance.OneIn(6)) {
    for (int64_t dim = 0; dim < rank; ++dim) {
      if (d.FixedSize(x, dim) == 1) return d.Add("Squeeze", {x, d.Ints({dim})});
    }
  }
  if (chance.OneIn(6)) return d.Add("Unsqueeze", {x, d.Ints({chance.Below(rank + 1)})});
  if (chance.OneIn(3)) {
    const auto first = static_cast<ValueId>(d.graph().num_values());
    if (DrawSomething(d)) {
      const ValueId made =
          d.Pick([&](ValueId id) { return id >= first && d.TypeOf(id) == d.TypeOf(x); });
      if (made != kNone) return made;
    }
  }
  return Mix(d, x);
}

bool If(ModelDraft& d, absl::string_view) {
  const ValueId condition = DrawSizeCondition(d);
  const ValueId x = d.PickFloat(0, 4);
  if (condition == kNone || x == kNone) return false;
  const bool which = d.chance().OneIn(2);
  const ValueId special = d.Within(condition, which, [&] { return Other(d, x); });
  const ValueId usual = d.chance().OneIn(2) ? d.Within(condition, !which, [&] { return Mix(d, x); })
                                            : d.Add("Tanh", {x});
  return d.AddIf(condition, which ? special : usual, which ? usual : special) != kNone;
}

bool WhereOfSizes(ModelDraft& d, absl::string_view op) {
  const ValueId condition = DrawSizeCondition(d);
  const ValueId x = d.PickFloat(0, 4);
  if (condition == kNone || x == kNone) return false;
  const ValueId other = Mix(d, x);
  if (other == kNone) return false;
  if (d.chance().OneIn(4)) {  // as a factor
    const ValueId factor = d.Add("Cast", {condition}, {{"to", ops::OnnxNumber(DType::kFloat32)}});
    return d.Add("Add", {x, d.Add("Mul", {other, factor})}) != kNone;
  }
  return (d.chance().OneIn(2) ? d.Add(op, {condition, x, other})
                              : d.Add(op, {condition, other, x})) != kNone;
}

bool LoopOfSizes(ModelDraft& d, absl::string_view) {
  const ValueId number = DrawSizeNumber(d);
  const ValueId x = d.PickFloat(0, 4);
  if (number == kNone || x == kNone) return false;
  const ValueId trips = Below(d, number, d.Int(d.chance().Between(2, 4)));
  if (trips == kNone) return false;
  return d.AddLoop(trips, x, [&](ValueId carried, ValueId turn) {
    const ValueId mixed = d.chance().OneIn(2) ? Mix(d, carried) : carried;
    if (d.chance().OneIn(2)) return d.Add("Tanh", {d.Add("Add", {mixed, d.Float(0.5)})});
    const ValueId floats = d.Add("Cast", {turn}, {{"to", ops::OnnxNumber(DType::kFloat32)}});
    return d.Add("Tanh", {d.Add("Add", {mixed, floats})});
  }) != kNone;
}

bool Position(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId x = d.PickFloat(1, 4);
  const ValueId number = DrawSizeNumber(d);
  if (x == kNone || number == kNone) return false;
  const int64_t dim = chance.Below(d.RankOf(x));
  const ValueId at = Below(d, number, SizeOf(d, x, dim));
  if (at == kNone) return false;
  if (op == "Gather")
    return d.Add(op, {x, chance.OneIn(2) ? at : AsVector(d, at)}, {{"axis", dim}}) != kNone;
  const ValueId place = AsVector(d, at);
  return (chance.OneIn(2)
              ? d.Add(op, {x, d.Ints({0}), d.Add("Add", {place, d.Ints({1})}), d.Ints({dim})})
              : d.Add(op, {x, place, d.Ints({INT64_MAX}), d.Ints({dim})})) != kNone;
}

bool Factor(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat();
  const ValueId number = DrawSizeNumber(d);
  if (x == kNone || number == kNone) return false;
  ValueId factor = d.Add("Cast", {number}, {{"to", ops::OnnxNumber(DType::kFloat32)}});
  factor = d.Add("Add", {d.Add("Abs", {factor}), d.Float(1)});
  if (d.chance().OneIn(2)) factor = d.Add("Sqrt", {factor});
  return factor != kNone && d.Add(op, {x, factor}) != kNone;
}

// 0, 1, 2 ... along a dim: as numbers that are added, or compared with a number.
bool Line(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId x = d.PickFloat(1, 4);
  if (x == kNone) return false;
  const int64_t rank = d.RankOf(x), dim = chance.Below(rank);
  ValueId line = d.Add("Range", {d.Int(0), SizeOf(d, x, dim), d.Int(1)});
  for (int64_t i = dim + 1; i < rank && line != kNone; ++i) {
    line = d.Add("Unsqueeze", {line, d.Ints({-1})});
  }
  if (line == kNone) return false;
  if (op == "Where" || chance.OneIn(2)) {
    const ValueId number =
        chance.OneIn(2) ? d.Int(chance.Of({2, 3, 6, 9, 25, 30})) : DrawSizeNumber(d);
    const ValueId inside =
        d.Add(std::string(chance.Of({"Less", "GreaterOrEqual"})), {line, number});
    const ValueId other = chance.OneIn(2) ? d.Float(0) : Mix(d, x);
    if (inside == kNone || other == kNone) return false;
    return (chance.OneIn(2) ? d.Add("Where", {inside, x, other})
                            : d.Add("Where", {inside, other, x})) != kNone;
  }
  const ValueId floats = d.Add("Cast", {line}, {{"to", ops::OnnxNumber(DType::kFloat32)}});
  return d.Add("Add", {x, d.Add("Mul", {floats, d.Float(0.125)})}) != kNone;
}

bool Constant(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1, 3);
  if (x == kNone) return false;
  if (op == "EyeLike") {
    const ValueId square = d.PickFloat(2, 2);
    return square != kNone && d.Add("Add", {square, d.Add(op, {square})}) != kNone;
  }
  const ValueId ones = d.Add(op, {d.Add("Shape", {x})},
                             {{"value", Tensor::FromVector<float>(DType::kFloat32, {1}, {1})}});
  return ones != kNone && d.Add("Add", {x, d.Add("Trilu", {ones})}) != kNone;
}

// Up to the next multiple, and back: as models with blocks do.
bool ToMultiple(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId x = d.PickFloat(1, 4);
  if (x == kNone) return false;
  const int64_t dim = chance.Below(d.RankOf(x)), block = chance.Of({2, 4, 8});
  const ValueId size = SizeOf(d, x, dim);
  const ValueId over = d.Add("Mod", {size, d.Int(block)});
  const ValueId missing = d.Add("Mod", {d.Add("Sub", {d.Int(block), over}), d.Int(block)});
  if (missing == kNone) return false;
  const ValueId pads = d.Add("Concat", {d.Ints({0}), AsVector(d, missing)}, {{"axis", int64_t{0}}});
  const ValueId wide = d.Add(op, {x, pads, d.Float(0), d.Ints({dim})});
  if (wide == kNone) return false;
  const ValueId mixed = chance.OneIn(2) ? Mix(d, wide) : d.Add("Tanh", {wide});
  return mixed != kNone &&
         d.Add("Slice", {mixed, d.Ints({0}), AsVector(d, size), d.Ints({dim})}) != kNone;
}

bool Count(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId x = d.PickFloat(1, 3);
  const ValueId number = DrawSizeNumber(d);
  if (x == kNone || number == kNone) return false;
  const int64_t rank = d.RankOf(x), dim = chance.Below(rank);
  const ValueId small = Below(d, number, d.Int(3));
  if (op == "Trilu")
    return rank > 1 && d.Add(op, {x, number}, {{"upper", chance.Below(2)}}) != kNone;
  if (op == "TopK") {
    const ValueId k = d.Add("Min", {number, SizeOf(d, x, dim)});
    return k != kNone && !d.AddNode(op, {x, AsVector(d, k)}, {{"axis", dim}}, 2).empty();
  }
  if (op == "Tile") {
    std::vector<ValueId> repeats;
    const ValueId times = AsVector(d, d.Add("Add", {small, d.Int(1)}));
    for (int64_t i = 0; i < rank; ++i) repeats.push_back(i == dim ? times : d.Ints({1}));
    return d.Add(op, {x, d.Add("Concat", repeats, {{"axis", int64_t{0}}})}) != kNone;
  }
  if (op == "OneHot") {
    const ValueId ids = d.PickInteger();
    const ValueId depth = d.Add("Add", {small, d.Int(4)});
    return ids != kNone && depth != kNone &&
           d.Add(op, {ids, depth,
                      d.Constant(Tensor::FromVector<float>(DType::kFloat32, {2}, {0, 1}))}) !=
               kNone;
  }
  if (op == "Resize") {
    std::vector<ValueId> sizes;
    for (int64_t i = 0; i < rank; ++i) {
      const ValueId size = AsVector(d, SizeOf(d, x, i));
      sizes.push_back(i + 1 == rank ? d.Add("Mul", {size, d.Ints({2})}) : size);
    }
    return d.Add(op, {x, kNone, kNone, d.Add("Concat", sizes, {{"axis", int64_t{0}}})},
                 {{"mode", std::string(chance.Of({"nearest", "linear"}))}}) != kNone;
  }
  // Split: a part of `number` elements, and the rest.
  const ValueId first = AsVector(d, Below(d, number, SizeOf(d, x, dim)));
  const ValueId rest = d.Add("Sub", {AsVector(d, SizeOf(d, x, dim)), first});
  const ValueId parts = d.Add("Concat", {first, rest}, {{"axis", int64_t{0}}});
  return parts != kNone && !d.AddNode(op, {x, parts}, {{"axis", dim}}, 2).empty();
}

// A Squeeze of whatever is 1.
bool SqueezeAll(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1, 4);
  return x != kNone && d.Add(op, {x}) != kNone;
}

// A number that is made of sizes, on its own or with ids.
bool Number(ModelDraft& d, absl::string_view) {
  const ValueId number = DrawSizeNumber(d);
  const ValueId ids = d.PickInteger();
  if (number == kNone || ids == kNone) return false;
  return d.Add(std::string(d.chance().Of({"Add", "Min", "Max"})), {ids, number}) != kNone;
}

constexpr OpTemplate kSizeTemplates[] = {
    {"If", If},
    {"If", If},
    {"If", If},
    {"If", If},
    {"If", If},
    {"Where", WhereOfSizes},
    {"Where", WhereOfSizes},
    {"Loop", LoopOfSizes},
    {"Gather", Position},
    {"Gather", Position},
    {"Slice", Position},
    {"Slice", Position},
    {"Mul", Factor},
    {"Div", Factor},
    {"Add", Line},
    {"Where", Line},
    {"ConstantOfShape", Constant},
    {"EyeLike", Constant},
    {"Pad", ToMultiple},
    {"Trilu", Count},
    {"TopK", Count},
    {"Tile", Count},
    {"OneHot", Count},
    {"Resize", Count},
    {"Split", Count},
    {"Squeeze", SqueezeAll},
    {"Add", Number},
    {"Size", Number},
};

}  // namespace

absl::Span<const OpTemplate> SizeTemplates() { return kSizeTemplates; }

}  // namespace reprise::fuzz

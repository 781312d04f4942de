#include "tests/fuzz/random_models/size_numbers.h"

#include "runtime/ops/kit/onnx_types.h"

namespace reprise::fuzz {
namespace {

using ops::OnnxNumber;

// Rather a size that moves than one that does not.
ValueId PickSize(ModelDraft& d) {
  const ValueId x = d.Pick([&](ValueId id) { return d.RankOf(id) >= 1; });
  if (x == kNone) return kNone;
  Chance& chance = d.chance();
  const std::vector<int64_t> moving = d.DimsWhere(x, /*fixed=*/false);
  const int64_t dim =
      !moving.empty() && !chance.OneIn(8) ? chance.Of(moving) : chance.Below(d.RankOf(x));
  if (chance.OneIn(10)) return d.Add("Size", {x});
  return SizeOf(d, x, dim);
}

ValueId ThroughFloats(ModelDraft& d, ValueId number) {
  Chance& chance = d.chance();
  ValueId x = d.Add("Cast", {number}, {{"to", OnnxNumber(DType::kFloat32)}});
  x = chance.OneIn(3) ? d.Add("Sqrt", {x})
                      : d.Add("Mul", {x, d.Float(chance.Of({0.5, 0.25, 1.5}))});
  x = d.Add(std::string(chance.Of({"Floor", "Ceil", "Round"})), {x});
  return d.Add("Cast", {x}, {{"to", OnnxNumber(DType::kInt64)}});
}

}  // namespace

ValueId SizeOf(ModelDraft& d, ValueId x, int64_t dim) {
  Chance& chance = d.chance();
  if (chance.OneIn(3)) {
    const ValueId one = d.Add("Shape", {x}, {{"start", dim}, {"end", dim + 1}});
    if (chance.OneIn(2)) return d.Add("Squeeze", {one, d.Ints({0})});
    return d.Add("ReduceProd", {one, d.Ints({0})}, {{"keepdims", int64_t{0}}});
  }
  const ValueId shape = d.Add("Shape", {x});
  return d.Add("Gather", {shape, d.Int(chance.OneIn(2) ? dim : dim - d.RankOf(x))},
               {{"axis", int64_t{0}}});
}

ValueId DrawSizeNumber(ModelDraft& d) {
  Chance& chance = d.chance();
  ValueId number = PickSize(d);
  for (int64_t steps = chance.OneIn(2) ? 0 : chance.Between(1, 2); steps > 0 && number != kNone;
       --steps) {
    switch (chance.Below(9)) {
      case 0:
        number =
            d.Add("Add", {number, chance.OneIn(2) ? d.Int(chance.Between(-3, 3)) : PickSize(d)});
        break;
      case 1:
        number = d.Add("Sub", {number, chance.OneIn(2) ? d.Int(1) : PickSize(d)});
        break;
      case 2:
        number = d.Add("Mul", {number, chance.OneIn(2) ? d.Int(2) : PickSize(d)});
        break;
      case 3:
        number = d.Add("Div", {number, d.Int(chance.Between(2, 4))});
        break;
      case 4:
        number = d.Add("Mod", {number, d.Int(chance.Between(2, 8))});
        break;
      case 5:
        number =
            d.Add("Min", {number, chance.OneIn(2) ? d.Int(chance.Of({2, 4, 8, 40})) : PickSize(d)});
        break;
      case 6:
        number =
            d.Add("Max", {number, chance.OneIn(2) ? d.Int(chance.Of({2, 4, 8, 40})) : PickSize(d)});
        break;
      case 7:
        number = ThroughFloats(d, number);
        break;
      default: {  // the last of a range
        const ValueId line = d.Add("Range", {d.Int(0), number, d.Int(chance.Between(1, 3))});
        number = line == kNone
                     ? number
                     : d.Add("ReduceMax", {line, d.Ints({0})}, {{"keepdims", int64_t{0}}});
      }
    }
  }
  return number;
}

ValueId DrawSizeCondition(ModelDraft& d) {
  Chance& chance = d.chance();
  const ValueId number = DrawSizeNumber(d);
  if (number == kNone) return kNone;
  if (chance.OneIn(10)) return d.Add("Cast", {number}, {{"to", OnnxNumber(DType::kBool)}});
  ValueId other = kNone;
  if (chance.OneIn(6)) {
    other = DrawSizeNumber(d);
  } else if (chance.OneIn(5)) {
    other = d.Int(chance.Of({24, 33, 48, 65, 100, 130, 300, 600}));
  } else {
    const auto tensors = d.TensorsOf(number);
    if (tensors.empty()) return kNone;
    const auto near = static_cast<int64_t>(chance.Of(tensors)->ToDoubles()[0]);
    other = d.Int(near + chance.Of({0, 0, 0, 1, -1}));
  }
  ValueId condition = d.Add(std::string(chance.Of({"Equal", "Equal", "Less", "Greater",
                                                   "LessOrEqual", "GreaterOrEqual"})),
                            {number, other});
  if (chance.OneIn(8)) condition = d.Add("Not", {condition});
  if (chance.OneIn(10)) {
    const ValueId second = DrawSizeCondition(d);
    if (second != kNone)
      condition = d.Add(std::string(chance.Of({"And", "Or", "Xor"})), {condition, second});
  }
  return condition;
}

ValueId AsVector(ModelDraft& d, ValueId number) {
  return d.chance().OneIn(2) ? d.Add("Unsqueeze", {number, d.Ints({0})})
                             : d.Add("Reshape", {number, d.Ints({1})});
}

ValueId Below(ModelDraft& d, ValueId number, ValueId limit) {
  if (d.chance().OneIn(2)) return d.Add("Mod", {number, limit});
  const ValueId last = d.Add("Sub", {limit, d.Int(1)});
  return d.Add("Max", {d.Add("Min", {number, last}), d.Int(0)});
}

}  // namespace reprise::fuzz

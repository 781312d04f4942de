// Elementwise ops.
#include "runtime/ops/kit/onnx_types.h"
#include "tests/fuzz/random_models/op_templates.h"

namespace reprise::fuzz {
namespace {

using ops::OnnxNumber;

// `x` brought to where `op` is defined and its results are of moderate size.
ValueId InDomain(ModelDraft& d, absl::string_view op, ValueId x) {
  if (op == "Sqrt") return d.Add("Abs", {x});
  if (op == "Log" || op == "Reciprocal") return d.Add("Add", {d.Add("Abs", {x}), d.Float(0.5)});
  if (op == "Acosh") return d.Add("Add", {d.Add("Abs", {x}), d.Float(1)});
  if (op == "Asin" || op == "Acos" || op == "Atanh" || op == "Tan") {
    return d.Add("Clip", {x, d.Float(-0.875), d.Float(0.875)});
  }
  if (op == "Exp" || op == "Sinh" || op == "Cosh") {
    return d.Add("Clip", {x, d.Float(-4), d.Float(4)});
  }
  return x;
}

Attributes AttributesOf(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const auto number = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * static_cast<double>(chance.Below(9)) / 8);
  };
  if (op == "Gelu") return {{"approximate", std::string(chance.Of({"none", "tanh"}))}};
  if (op == "Elu" || op == "Celu" || op == "LeakyRelu" || op == "ThresholdedRelu") {
    return {{"alpha", number(0.125, 1)}};
  }
  if (op == "HardSigmoid") return {{"alpha", number(0.1, 0.4)}, {"beta", number(0.2, 0.7)}};
  if (op == "Shrink") return {{"bias", number(0, 1)}, {"lambd", number(0, 1)}};
  if (op == "com.microsoft.QuickGelu") return {{"alpha", number(1, 1.75)}};
  if (op == "IsInf") return {{"detect_positive", chance.Below(2)}};
  return {};
}

bool Unary(ModelDraft& d, absl::string_view op) {
  ValueId x = d.PickFloat();
  if (x == kNone) return false;
  x = InDomain(d, op, x);
  return x != kNone && d.Add(op, {x}, AttributesOf(d, op)) != kNone;
}

// Something that broadcasts with `x`: a value, numbers of its last dims, or one number.
ValueId Beside(ModelDraft& d, ValueId x) {
  Chance& chance = d.chance();
  if (chance.OneIn(3)) return d.Float(chance.Number(1, true));
  if (chance.OneIn(2)) return d.PickFloat();
  Shape shape;
  for (int64_t dim = d.RankOf(x) - 1; dim >= 0; --dim) {
    const int64_t size = d.FixedSize(x, dim);
    shape.insert(shape.begin(), size > 0 && !chance.OneIn(4) ? size : 1);
    if (chance.OneIn(3)) break;
  }
  return d.Weight(shape);
}

bool Binary(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  ValueId a = d.PickFloat();
  if (a == kNone) return false;
  ValueId b = Beside(d, a);
  if (b == kNone) return false;
  if (op == "Div") b = d.Add("Add", {d.Add("Abs", {b}), d.Float(0.5)});
  if (op == "Pow") a = d.Add("Add", {d.Add("Abs", {a}), d.Float(0.25)});
  if (op == "Pow") b = d.Float(chance.Of({-1.0, 0.5, 2.0, 3.0}));
  Attributes attributes;
  if (op == "Mod") {
    b = d.Float(chance.Of({0.5, 1.0, 3.0}));
    attributes.Set("fmod", int64_t{1});
  }
  if (op != "Pow" && op != "Mod" && op != "PRelu" && chance.OneIn(2)) std::swap(a, b);
  if (op == "Div" && d.RangeOf(b).first < 0.5) std::swap(a, b);
  return a != kNone && b != kNone && d.Add(op, {a, b}, attributes) != kNone;
}

bool IntegerBinary(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId a = d.PickInteger();
  if (a == kNone) return false;
  ValueId b = chance.OneIn(3) ? d.PickInteger() : d.Int(chance.Between(1, 9));
  if (op == "BitShift") {
    const auto to = OnnxNumber(chance.Of({DType::kUInt8, DType::kUInt32, DType::kUInt64}));
    const ValueId x = d.Add("Cast",
                            {
                                d.Add("Abs", {a}),
                            },
                            {{"to", to}});
    b = d.Add("Cast", {d.Int(chance.Below(3))}, {{"to", to}});
    const ValueId shifted =
        d.Add(op, {x, b}, {{"direction", std::string(chance.Of({"LEFT", "RIGHT"}))}});
    return shifted != kNone &&
           d.Add("Cast", {shifted}, {{"to", OnnxNumber(DType::kInt64)}}) != kNone;
  }
  if (op == "BitwiseNot") return d.Add(op, {a}) != kNone;
  if (op == "Mod" || op == "Div") b = d.Int(chance.Between(1, 9));
  return d.Add(op, {a, b}) != kNone;
}

bool Compare(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const bool integers = op == "Equal" || chance.OneIn(3);
  const ValueId a = integers ? d.PickInteger() : d.PickFloat();
  if (a == kNone) return false;
  const ValueId b =
      integers ? (chance.OneIn(2) ? d.PickInteger() : d.Int(chance.Below(8))) : Beside(d, a);
  return b != kNone && d.Add(op, {a, b}) != kNone;
}

bool Logic(ModelDraft& d, absl::string_view op) {
  const ValueId a = d.PickBool();
  if (a == kNone) return false;
  if (op == "Not") return d.Add(op, {a}) != kNone;
  const ValueId b = d.PickBool();
  return b != kNone && d.Add(op, {a, b}) != kNone;
}

bool Variadic(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat();
  if (x == kNone) return false;
  std::vector<ValueId> operands = {x};
  for (int64_t i = d.chance().Below(3); i > 0; --i) operands.push_back(Beside(d, x));
  for (const ValueId id : operands) {
    if (id == kNone) return false;
  }
  return d.Add(op, operands) != kNone;
}

bool BiasGelu(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1);
  if (x == kNone) return false;
  const int64_t width = d.FixedSize(x, d.RankOf(x) - 1);
  if (op == "com.microsoft.FastGelu" && (width < 1 || d.chance().OneIn(3))) {
    return d.Add(op, {x}) != kNone;
  }
  return width > 0 && d.Add(op, {x, d.Weight({width})}) != kNone;
}

bool Where(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat();
  if (x == kNone) return false;
  const ValueId condition = d.chance().OneIn(2) ? d.PickBool() : d.Add("Less", {x, d.Float(0.25)});
  const ValueId other = Beside(d, x);
  if (condition == kNone || other == kNone) return false;
  return (d.chance().OneIn(2) ? d.Add(op, {condition, x, other})
                              : d.Add(op, {condition, other, x})) != kNone;
}

bool Clip(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat();
  if (x == kNone) return false;
  const bool low = d.chance().OneIn(2);
  return d.Add(op, {x, low ? d.Float(-0.75) : kNone,
                    low && d.chance().OneIn(2) ? kNone : d.Float(1)}) != kNone;
}

bool Cast(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId x = d.Pick([](ValueId) { return true; });
  if (x == kNone) return false;
  DType to = chance.Of({DType::kFloat32, DType::kFloat32, DType::kInt64, DType::kBool,
                        DType::kInt32, DType::kFloat64, DType::kFloat16, DType::kBFloat16});
  if (!IsFloating(d.TypeOf(x))) to = DType::kFloat32;
  if (op == "CastLike") {
    return d.Add(op, {x, d.Numbers(to, {}, 0, 1)}) != kNone;
  }
  const ValueId y = d.Add(op, {x}, {{"to", OnnxNumber(to)}});
  if (y == kNone || to == DType::kFloat32 || to == DType::kInt64 || to == DType::kBool) {
    return y != kNone;
  }
  // One op runs in a rarer dtype, and a cast leads back.
  const ValueId z = chance.OneIn(2) ? d.Add("Mul", {y, y}) : d.Add("Neg", {y});
  return z != kNone && d.Add(op, {z}, {{"to", OnnxNumber(DType::kFloat32)}}) != kNone;
}

bool Dropout(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat();
  return x != kNone && d.Add(op, {x}) != kNone;
}

constexpr OpTemplate kElementwiseTemplates[] = {
    {"Abs", Unary},
    {"Neg", Unary},
    {"Sign", Unary},
    {"Relu", Unary},
    {"Ceil", Unary},
    {"Floor", Unary},
    {"Round", Unary},
    {"Sqrt", Unary},
    {"Reciprocal", Unary},
    {"Exp", Unary},
    {"Log", Unary},
    {"Sin", Unary},
    {"Cos", Unary},
    {"Tan", Unary},
    {"Asin", Unary},
    {"Acos", Unary},
    {"Atan", Unary},
    {"Sinh", Unary},
    {"Cosh", Unary},
    {"Tanh", Unary},
    {"Asinh", Unary},
    {"Acosh", Unary},
    {"Atanh", Unary},
    {"Erf", Unary},
    {"Sigmoid", Unary},
    {"Gelu", Unary},
    {"Softplus", Unary},
    {"Softsign", Unary},
    {"Mish", Unary},
    {"Elu", Unary},
    {"Celu", Unary},
    {"Selu", Unary},
    {"LeakyRelu", Unary},
    {"HardSigmoid", Unary},
    {"HardSwish", Unary},
    {"ThresholdedRelu", Unary},
    {"Shrink", Unary},
    {"com.microsoft.QuickGelu", Unary},
    {"IsNaN", Unary},
    {"IsInf", Unary},
    {"Identity", Unary},
    {"Not", Logic},
    {"And", Logic},
    {"Or", Logic},
    {"Xor", Logic},
    {"Add", Binary},
    {"Mul", Binary},
    {"Sub", Binary},
    {"Div", Binary},
    {"Mod", Binary},
    {"Pow", Binary},
    {"PRelu", Binary},
    {"Add", Binary},
    {"Mul", Binary},
    {"Add", IntegerBinary},
    {"Mul", IntegerBinary},
    {"Mod", IntegerBinary},
    {"BitwiseNot", IntegerBinary},
    {"BitwiseAnd", IntegerBinary},
    {"BitwiseOr", IntegerBinary},
    {"BitwiseXor", IntegerBinary},
    {"BitShift", IntegerBinary},
    {"Equal", Compare},
    {"Less", Compare},
    {"LessOrEqual", Compare},
    {"Greater", Compare},
    {"GreaterOrEqual", Compare},
    {"Max", Variadic},
    {"Min", Variadic},
    {"Sum", Variadic},
    {"Mean", Variadic},
    {"com.microsoft.BiasGelu", BiasGelu},
    {"com.microsoft.FastGelu", BiasGelu},
    {"Where", Where},
    {"Clip", Clip},
    {"Cast", Cast},
    {"CastLike", Cast},
    {"Dropout", Dropout},
};

}  // namespace

absl::Span<const OpTemplate> ElementwiseTemplates() { return kElementwiseTemplates; }

}  // namespace reprise::fuzz

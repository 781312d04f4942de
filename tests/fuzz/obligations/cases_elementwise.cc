// Ops of single elements.
#include "absl/types/span.h"
#include "runtime/ops/kit/onnx_types.h"
#include "tests/fuzz/obligations/row_draft.h"

namespace reprise::obligations {
namespace {

Attributes ActivationAttributes(RowDraft& d, absl::string_view op) {
  const auto number = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * static_cast<double>(d.chance().Below(9)) / 8);
  };
  if (op == "Gelu") return {{"approximate", std::string(d.chance().Of({"none", "tanh"}))}};
  if (op == "Elu" || op == "Celu" || op == "LeakyRelu" || op == "ThresholdedRelu") {
    return {{"alpha", number(0.125, 1)}};
  }
  if (op == "HardSigmoid") return {{"alpha", number(0.1, 0.4)}, {"beta", number(0.2, 0.7)}};
  if (op == "Shrink") return {{"bias", number(0, 1)}, {"lambd", number(0, 1)}};
  if (op == "com.microsoft.QuickGelu") return {{"alpha", number(1, 1.75)}};
  if (op == "IsInf") return {{"detect_positive", d.chance().Below(2)}};
  return {};
}

ValueId FloatUnary(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Data(d.FloatType(), d.AnyDims(0, 4))}, ActivationAttributes(d, op));
}

ValueId NumberUnary(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Data(d.NumberType(), d.AnyDims(0, 4))}, ActivationAttributes(d, op));
}

// Defined within 1 of 0, or above it.
ValueId UnitUnary(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Data(d.FloatType(), d.AnyDims(0, 4), "unit")});
}
ValueId PositiveUnary(RowDraft& d, absl::string_view op) {
  const ValueId x = d.Data(d.FloatType(), d.AnyDims(0, 4), "pos");
  return d.Add(op, {op == "Acosh" ? d.Add("Add", {x, x}) : x});
}

ValueId BoolUnary(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Data(DType::kBool, d.AnyDims(0, 4))});
}

ValueId IntegerUnary(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Data(d.IntegerType(), d.AnyDims(0, 4))});
}

ValueId AnyUnary(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Data(d.AnyType(), d.AnyDims(0, 4))});
}

// Two operands, either of which may be the wider one, and a constant.
ValueId OfTwo(RowDraft& d, absl::string_view op, DType dtype, Attributes attributes = {},
              absl::string_view second = "x") {
  const Dims wide = d.AnyDims(0, 4);
  ValueId a = d.Data(dtype, wide), b = d.DataOrFixed(dtype, d.Beside(wide), second);
  if (second == "x" && d.chance().OneIn(3)) std::swap(a, b);
  return d.Add(op, {a, b}, std::move(attributes));
}

ValueId NumberBinary(RowDraft& d, absl::string_view op) { return OfTwo(d, op, d.NumberType()); }
ValueId FloatBinary(RowDraft& d, absl::string_view op) { return OfTwo(d, op, d.FloatType()); }
ValueId BoolBinary(RowDraft& d, absl::string_view op) { return OfTwo(d, op, DType::kBool); }
ValueId IntegerBinary(RowDraft& d, absl::string_view op) { return OfTwo(d, op, d.IntegerType()); }
ValueId AnyBinary(RowDraft& d, absl::string_view op) { return OfTwo(d, op, d.AnyType()); }
ValueId Divide(RowDraft& d, absl::string_view op) {
  return OfTwo(d, op, d.NumberType(), {}, "pos");
}

ValueId Modulo(RowDraft& d, absl::string_view op) {
  const DType dtype = d.NumberType();
  const int64_t fmod = IsFloating(dtype) ? 1 : d.chance().Below(2);
  return OfTwo(d, op, dtype, {{"fmod", fmod}}, "pos");
}

ValueId Power(RowDraft& d, absl::string_view op) {
  const DType dtype = d.FloatType();
  const Dims wide = d.AnyDims(0, 4);
  return d.Add(op, {d.Data(dtype, wide, "pos"), d.DataOrFixed(dtype, d.Beside(wide), "whole")});
}

ValueId BitShift(RowDraft& d, absl::string_view op) {
  const DType dtype =
      d.chance().Of({DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64});
  return OfTwo(d, op, dtype, {{"direction", std::string(d.chance().Of({"LEFT", "RIGHT"}))}},
               "whole");
}

ValueId Several(RowDraft& d, absl::string_view op) {
  const DType dtype = op == "Mean" || op == "Sum" ? d.FloatType() : d.NumberType();
  const Dims wide = d.AnyDims(0, 4);
  std::vector<ValueId> operands = {d.Data(dtype, wide)};
  for (int64_t i = d.chance().Below(3); i > 0; --i) {
    operands.push_back(d.DataOrFixed(dtype, d.Beside(wide)));
  }
  return d.Add(op, operands);
}

ValueId BiasGelu(RowDraft& d, absl::string_view op) {
  const int64_t width = d.chance().Between(1, 4);
  std::vector<int64_t> wanted(d.chance().Between(1, 3), kAny);
  const bool open = d.chance().OneIn(4);
  wanted.push_back(open ? kAny : width);
  const Dims dims = d.DrawDims(wanted);
  const DType dtype = d.chance().Of({DType::kFloat32, DType::kFloat16});
  const ValueId x = d.Data(dtype, dims);
  if (op == "com.microsoft.FastGelu" && d.chance().OneIn(3)) return d.Add(op, {x});
  return d.Add(op, {x, d.DataOrFixed(dtype, {dims.back()})});
}

ValueId PRelu(RowDraft& d, absl::string_view op) {
  const DType dtype = d.FloatType();
  const Dims dims = d.AnyDims(1, 4);
  return d.Add(op, {d.Data(dtype, dims), d.DataOrFixed(dtype, d.Beside(dims))});
}

ValueId Where(RowDraft& d, absl::string_view op) {
  const DType dtype = d.AnyType();
  const Dims wide = d.AnyDims(0, 4);
  std::vector<Dims> dims = {wide, d.Beside(wide), d.Beside(wide)};
  std::swap(dims[0], dims[d.chance().Below(3)]);
  return d.Add(op, {d.DataOrFixed(DType::kBool, dims[0], "flag"), d.DataOrFixed(dtype, dims[1]),
                    d.DataOrFixed(dtype, dims[2])});
}

ValueId Clip(RowDraft& d, absl::string_view op) {
  const DType dtype = d.NumberType();
  const auto bound = [&](double value) {
    if (d.chance().OneIn(3)) return kNone;
    return d.chance().OneIn(4) ? d.Data(dtype, {}) : d.Numbers(dtype, {}, value, value);
  };
  return d.Add(op, {d.Data(dtype, d.AnyDims(0, 4)), bound(0), bound(1)});
}

ValueId Cast(RowDraft& d, absl::string_view op) {
  const DType to = d.AnyType();
  const ValueId x = d.Data(d.AnyType(), d.AnyDims(0, 4));
  if (op == "CastLike") return d.Add(op, {x, d.DataOrFixed(to, d.AnyDims(0, 2))});
  return d.Add(op, {x}, {{"to", ops::OnnxNumber(to)}});
}

ValueId Dropout(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Data(d.FloatType(), d.AnyDims(0, 4))}, {}, d.chance().Between(1, 2));
}

ValueId CheckRange(RowDraft& d, absl::string_view op) {
  const DType dtype = d.chance().Of({DType::kInt32, DType::kInt64});
  return d.Add(op, {d.Bounded("index", SizeDim(4), dtype, d.AnyDims(0, 3))},
               {{"low", int64_t{0}}, {"high", int64_t{3}}, {"size", int64_t{4}}});
}

constexpr RowCase kElementwiseCases[] = {
    {"Abs", NumberUnary},
    {"Neg", NumberUnary},
    {"Sign", NumberUnary},
    {"Relu", NumberUnary},
    {"Ceil", FloatUnary},
    {"Floor", FloatUnary},
    {"Round", FloatUnary},
    {"Sqrt", PositiveUnary},
    {"Sqrt", FloatUnary},
    {"Reciprocal", PositiveUnary},
    {"Reciprocal", FloatUnary},
    {"Exp", FloatUnary},
    {"Log", PositiveUnary},
    {"Log", FloatUnary},
    {"Sin", FloatUnary},
    {"Cos", FloatUnary},
    {"Tan", UnitUnary},
    {"Asin", UnitUnary},
    {"Acos", UnitUnary},
    {"Atan", FloatUnary},
    {"Sinh", FloatUnary},
    {"Cosh", FloatUnary},
    {"Tanh", FloatUnary},
    {"Asinh", FloatUnary},
    {"Acosh", PositiveUnary},
    {"Atanh", UnitUnary},
    {"Erf", FloatUnary},
    {"Sigmoid", FloatUnary},
    {"Gelu", FloatUnary},
    {"Softplus", FloatUnary},
    {"Softsign", FloatUnary},
    {"Mish", FloatUnary},
    {"Elu", FloatUnary},
    {"Celu", FloatUnary},
    {"Selu", FloatUnary},
    {"LeakyRelu", FloatUnary},
    {"HardSigmoid", FloatUnary},
    {"HardSwish", FloatUnary},
    {"ThresholdedRelu", FloatUnary},
    {"Shrink", NumberUnary},
    {"com.microsoft.QuickGelu", FloatUnary},
    {"Not", BoolUnary},
    {"BitwiseNot", IntegerUnary},
    {"IsNaN", FloatUnary},
    {"IsInf", FloatUnary},
    {"Add", NumberBinary},
    {"Mul", NumberBinary},
    {"Sub", NumberBinary},
    {"Div", Divide},
    {"Div", FloatBinary},
    {"Mod", Modulo},
    {"Pow", Power},
    {"PRelu", PRelu},
    {"Equal", AnyBinary},
    {"Less", NumberBinary},
    {"LessOrEqual", NumberBinary},
    {"Greater", NumberBinary},
    {"GreaterOrEqual", NumberBinary},
    {"And", BoolBinary},
    {"Or", BoolBinary},
    {"Xor", BoolBinary},
    {"BitwiseAnd", IntegerBinary},
    {"BitwiseOr", IntegerBinary},
    {"BitwiseXor", IntegerBinary},
    {"BitShift", BitShift},
    {"Max", Several},
    {"Min", Several},
    {"Sum", Several},
    {"Mean", Several},
    {"com.microsoft.BiasGelu", BiasGelu},
    {"com.microsoft.FastGelu", BiasGelu},
    {"Where", Where},
    {"Clip", Clip},
    {"Cast", Cast},
    {"CastLike", Cast},
    {"Identity", AnyUnary},
    {"Dropout", Dropout},
    {"reprise.CheckRange", CheckRange},
};

}  // namespace

absl::Span<const RowCase> ElementwiseCases() { return kElementwiseCases; }

}  // namespace reprise::obligations

// Matrix products, and products of bytes.
#include "runtime/ops/kit/onnx_types.h"
#include "tests/fuzz/random_models/op_templates.h"

namespace reprise::fuzz {
namespace {

// `x` brought to small numbers, so that products of products stay so.
ValueId Tame(ModelDraft& d, ValueId x) {
  const auto [low, high] = d.RangeOf(x);
  return low > -8 && high < 8 ? x : d.Add("Tanh", {x});
}

bool MatMul(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  ValueId x = d.PickFloat(1, 4);
  if (x == kNone) return false;
  x = Tame(d, x);
  const int64_t inner = d.FixedSize(x, d.RankOf(x) - 1);
  if (inner > 0 && !chance.OneIn(3)) {
    const ValueId y = d.Add(op, {x, d.Weight({inner, chance.Of({4, 8})}, inner)});
    if (y == kNone || chance.OneIn(2)) return y != kNone;
    return d.Add("Add", {y, d.Weight({d.FixedSize(y, d.RankOf(y) - 1)})}) != kNone;
  }
  // Two values: over whatever size they share, or one with itself.
  const ValueId other = Tame(d, d.PickFloat(1, 4));
  if (d.Add(op, {x, other}) != kNone) return true;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < d.RankOf(x); ++i) order.push_back(i);
  if (order.size() < 2) return false;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const ValueId turned = d.Add("Transpose", {x}, {{"perm", order}});
  return turned != kNone &&
         (chance.OneIn(2) ? d.Add(op, {x, turned}) : d.Add(op, {turned, x})) != kNone;
}

bool FusedMatMul(ModelDraft& d, absl::string_view op) {
  const ValueId x = Tame(d, d.PickFloat(2, 4));
  if (x == kNone) return false;
  const bool over_rows = d.chance().OneIn(3);
  return d.Add(op, {x, x},
               {{"alpha", 0.5f},
                {"transA", over_rows ? int64_t{1} : 0},
                {"transB", over_rows ? int64_t{0} : 1}}) != kNone;
}

bool Gemm(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId x = Tame(d, d.PickFloat(2, 2));
  if (x == kNone) return false;
  const bool turned = chance.OneIn(4);
  const int64_t inner = d.FixedSize(x, turned ? 0 : 1);
  if (inner < 1) return d.Add(op, {x, x}, {{"transB", int64_t{1}}}) != kNone;
  const bool weight_turned = chance.OneIn(2);
  const Shape shape = weight_turned ? Shape{6, inner} : Shape{inner, 6};
  return d.Add(op, {x, d.Weight(shape, inner), chance.OneIn(2) ? d.Weight({6}) : kNone},
               {{"transA", turned ? int64_t{1} : 0},
                {"transB", weight_turned ? int64_t{1} : 0},
                {"alpha", chance.Of({1.0f, 0.5f})},
                {"beta", chance.Of({1.0f, 2.0f})}}) != kNone;
}

bool Einsum(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId x = Tame(d, d.PickFloat(2, 4));
  if (x == kNone) return false;
  const ValueId y = chance.OneIn(2) ? x : Tame(d, d.PickFloat(2, 4));
  const int64_t rank = d.RankOf(x);
  if (rank == 2) {
    return d.Add(op, {x, y},
                 {{"equation",
                   std::string(chance.Of({"ab,cb->ac", "ab,ac->bc", "ab,ab->a", "ab,ab->b"}))}}) !=
           kNone;
  }
  if (rank == 3) {
    return d.Add(op, {x, y},
                 {{"equation", std::string(chance.Of({"abc,adc->abd", "abc,abd->acd", "abc,abc->ac",
                                                      "abc,dbc->ad"}))}}) != kNone;
  }
  return d.Add(op, {x}, {{"equation", std::string(chance.Of({"abcd->acbd", "abcd->abd"}))}}) !=
         kNone;
}

// Bytes of a float, with the scale and zero point of a constant or of its own range.
struct Bytes {
  ValueId value = kNone, scale = kNone, zero = kNone;
};

Bytes Quantize(ModelDraft& d, ValueId x, bool dynamic, bool is_signed = false) {
  if (x == kNone) return {};
  if (dynamic) {
    const std::vector<ValueId> all = d.AddNode("DynamicQuantizeLinear", {x}, {}, 3);
    return all.empty() ? Bytes{} : Bytes{all[0], all[1], all[2]};
  }
  const ValueId scale = d.Float(d.chance().Of({1.0 / 16, 1.0 / 32, 0.03}));
  const ValueId zero =
      is_signed ? d.Numbers(DType::kInt8, {}, -3, 3) : d.Numbers(DType::kUInt8, {}, 100, 140);
  return {d.Add("QuantizeLinear", {x, scale, zero}), scale, zero};
}

bool QuantizeDequantize(ModelDraft& d, absl::string_view op) {
  const ValueId x = Tame(d, d.PickFloat(1));
  const Bytes bytes = Quantize(d, x, op == "DynamicQuantizeLinear", d.chance().OneIn(2));
  if (bytes.value == kNone) return false;
  return d.Add("DequantizeLinear", {bytes.value, bytes.scale, bytes.zero}) != kNone;
}

bool MatMulInteger(ModelDraft& d, absl::string_view op) {
  const ValueId x = Tame(d, d.PickFloat(2, 4));
  if (x == kNone) return false;
  const int64_t inner = d.FixedSize(x, d.RankOf(x) - 1);
  const Bytes bytes = Quantize(d, x, d.chance().OneIn(2));
  if (inner < 1 || bytes.value == kNone) return false;
  const ValueId weight = d.Numbers(DType::kInt8, {inner, 8}, -60, 60);
  const ValueId sums = d.Add(op, {bytes.value, weight, bytes.zero});
  if (sums == kNone) return false;
  const ValueId floats = d.Add("Cast", {sums}, {{"to", ops::OnnxNumber(DType::kFloat32)}});
  const ValueId scaled = d.Add("Mul", {floats, d.Add("Mul", {bytes.scale, d.Float(0.0125)})});
  return scaled != kNone;
}

bool QLinearMatMul(ModelDraft& d, absl::string_view op) {
  const ValueId x = Tame(d, d.PickFloat(2, 4));
  if (x == kNone) return false;
  const int64_t inner = d.FixedSize(x, d.RankOf(x) - 1);
  const Bytes bytes = Quantize(d, x, d.chance().OneIn(4));
  if (inner < 1 || bytes.value == kNone) return false;
  const ValueId weight = d.Numbers(DType::kInt8, {inner, 8}, -60, 60);
  const ValueId scale = d.Float(0.1), zero = d.Numbers(DType::kUInt8, {}, 128, 128);
  const ValueId y = d.Add(op, {bytes.value, bytes.scale, bytes.zero, weight, d.Float(0.0125),
                               d.Numbers(DType::kInt8, {}, 0, 0), scale, zero});
  return y != kNone && d.Add("DequantizeLinear", {y, scale, zero}) != kNone;
}

// Weights kept as integers of one scale a column.
bool StoredIntegers(ModelDraft& d, absl::string_view op) {
  const ValueId x = Tame(d, d.PickFloat(2, 3));
  if (x == kNone) return false;
  const int64_t inner = d.FixedSize(x, d.RankOf(x) - 1);
  if (inner < 1) return false;
  const ValueId weight = d.Numbers(DType::kInt8, {inner, 32}, -60, 60);
  const ValueId floats =
      d.Add("DequantizeLinear", {weight, d.Numbers(DType::kFloat32, {32}, 0.01, 0.02)},
            {{"axis", int64_t{1}}});
  return floats != kNone && d.Add("MatMul", {x, floats}) != kNone;
}

constexpr OpTemplate kProductTemplates[] = {
    {"MatMul", MatMul},
    {"MatMul", MatMul},
    {"MatMul", MatMul},
    {"Gemm", Gemm},
    {"Einsum", Einsum},
    {"com.microsoft.FusedMatMul", FusedMatMul},
    {"MatMulInteger", MatMulInteger},
};

constexpr OpTemplate kQuantized[] = {
    {"QuantizeLinear", QuantizeDequantize}, {"DynamicQuantizeLinear", QuantizeDequantize},
    {"MatMulInteger", MatMulInteger},       {"QLinearMatMul", QLinearMatMul},
    {"DequantizeLinear", StoredIntegers},
};

}  // namespace

absl::Span<const OpTemplate> ProductTemplates() { return kProductTemplates; }
absl::Span<const OpTemplate> QuantizedTemplates() { return kQuantized; }

}  // namespace reprise::fuzz

// Products, of floats and of bytes, and quantisation.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tests/fuzz/obligations/row_draft.h"

namespace reprise::obligations {
namespace {

// Two matrices that fit, with dims of batches before them.
struct Factors {
  Dims a, b;
};

Factors DrawFactors(RowDraft& d) {
  Chance& chance = d.chance();
  const Dims dims = d.AnyDims(2, 4);
  Dims b = dims;
  const size_t rank = dims.size();
  b[rank - 2] = dims[rank - 1];
  b[rank - 1] = chance.OneIn(3) ? dims[rank - 2] : SizeDim(chance.Between(1, 4));
  if (chance.OneIn(2)) b.erase(b.begin(), b.end() - 2);
  for (size_t i = 0; i + 2 < b.size(); ++i) {
    if (chance.OneIn(4)) b[i] = SizeDim(1);
  }
  return {dims, b};
}

ValueId MatMul(RowDraft& d, absl::string_view op) {
  auto [a, b] = DrawFactors(d);
  if (d.chance().OneIn(8)) a.erase(a.begin(), a.end() - 1);
  if (d.chance().OneIn(8)) b = {b[b.size() - 2]};
  const DType dtype = d.FloatType();
  return d.Add(op, {d.Data(dtype, a), d.DataOrFixed(dtype, b)});
}

void Turn(Dims& dims) { std::swap(dims[dims.size() - 2], dims[dims.size() - 1]); }

ValueId Gemm(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  Dims a = d.DrawDims({kAny, kAny});
  Dims b = {a[1], chance.OneIn(3) ? a[0] : SizeDim(chance.Between(1, 4))};
  const Dims c = d.Beside({a[0], b[1]});
  const int64_t trans_a = chance.OneIn(3), trans_b = chance.OneIn(2);
  if (trans_a != 0) Turn(a);
  if (trans_b != 0) Turn(b);
  const DType dtype = chance.OneIn(4) ? d.FloatType() : DType::kFloat32;
  return d.Add(op,
               {d.Data(dtype, a), d.DataOrFixed(dtype, b),
                chance.OneIn(2) ? d.DataOrFixed(dtype, c) : kNone},
               {{"transA", trans_a},
                {"transB", trans_b},
                {"alpha", chance.Of({1.0f, 0.5f})},
                {"beta", chance.Of({1.0f, 2.0f})}});
}

ValueId FusedMatMul(RowDraft& d, absl::string_view op) {
  auto [a, b] = DrawFactors(d);
  const int64_t trans_a = d.chance().OneIn(3), trans_b = d.chance().OneIn(2);
  if (trans_a != 0) Turn(a);
  if (trans_b != 0) Turn(b);
  return d.Add(op, {d.Data(DType::kFloat32, a), d.DataOrFixed(DType::kFloat32, b)},
               {{"alpha", 0.5f}, {"transA", trans_a}, {"transB", trans_b}});
}

DType Byte(RowDraft& d) { return d.chance().Of({DType::kUInt8, DType::kInt8}); }

ValueId MatMulInteger(RowDraft& d, absl::string_view op) {
  const auto [a, b] = DrawFactors(d);
  const DType left = Byte(d), right = Byte(d);
  const ValueId zero_a = d.chance().OneIn(3)   ? kNone
                         : d.chance().OneIn(4) ? d.DataOrFixed(left, {a[a.size() - 2]})
                                               : d.Numbers(left, {}, 0, 5);
  const ValueId zero_b = d.chance().OneIn(2) ? kNone : d.Numbers(right, {}, 0, 5);
  return d.Add(op, {d.Data(left, a), d.DataOrFixed(right, b), zero_a, zero_b});
}

ValueId QLinearMatMul(RowDraft& d, absl::string_view op) {
  const auto [a, b] = DrawFactors(d);
  const DType left = Byte(d), right = Byte(d);
  const auto scale = [&](double value) {
    return d.chance().OneIn(6) ? d.Data(DType::kFloat32, {}, "pos")
                               : d.Numbers(DType::kFloat32, {}, value, value);
  };
  return d.Add(op,
               {d.Data(left, a), scale(0.25), d.Numbers(left, {}, 0, 9), d.DataOrFixed(right, b),
                scale(0.125), d.Numbers(right, {}, 0, 9), scale(0.5), d.Numbers(left, {}, 0, 9)});
}

// Letters of each operand, some of which all share, and some of them in the result.
ValueId Einsum(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const Dims dims = d.AnyDims(2, 4);
  std::string letters = "abcd", other, result;
  letters.resize(dims.size());
  Dims of_other;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (chance.OneIn(3)) continue;
    other += letters[i];
    of_other.push_back(dims[i]);
  }
  if (chance.OneIn(2)) {
    const int64_t at = chance.Between(0, static_cast<int64_t>(other.size()));
    other.insert(other.begin() + at, 'x');
    of_other.insert(of_other.begin() + at, SizeDim(chance.Between(1, 3)));
  }
  for (const char letter : letters + (other.find('x') == std::string::npos ? "" : "x")) {
    if (!chance.OneIn(3))
      result.insert(result.begin() + chance.Between(0, static_cast<int64_t>(result.size())),
                    letter);
  }
  const DType dtype = chance.OneIn(4) ? d.FloatType() : DType::kFloat32;
  const ValueId x = d.Data(dtype, dims);
  if (other.empty() || chance.OneIn(4)) {
    result.erase(std::remove(result.begin(), result.end(), 'x'), result.end());
    return d.Add(op, {x}, {{"equation", absl::StrCat(letters, "->", result)}});
  }
  return d.Add(op, {x, d.DataOrFixed(dtype, of_other)},
               {{"equation", absl::StrCat(letters, ",", other, "->", result)}});
}

ValueId Det(RowDraft& d, absl::string_view op) {
  std::vector<int64_t> wanted(d.chance().Between(0, 2), kAny);
  const int64_t size = d.chance().Between(1, 3);
  wanted.insert(wanted.end(), {size, size});
  Dims dims = d.DrawDims(wanted);
  if (d.chance().OneIn(6)) dims[dims.size() - 2] = dims.back() = {.symbol = kAxis};
  return d.Add(op, {d.Data(d.chance().OneIn(4) ? DType::kFloat64 : DType::kFloat32, dims)});
}

ValueId Stft(RowDraft& d, absl::string_view op) {
  const Dims dims = d.DrawDims({kAny, kAny, 1});
  const ValueId x = d.Data(DType::kFloat32, dims);
  const ValueId frame = d.chance().OneIn(4) ? kNone : d.Int(d.chance().Of({2, 4}));
  if (frame == kNone && d.chance().OneIn(2)) return d.Add(op, {x, d.Int(1)});  // one of all samples
  const ValueId window =
      frame == kNone || d.chance().OneIn(2) ? d.Fixed(DType::kFloat32, {4}) : kNone;
  return d.Add(op, {x, d.Int(d.chance().Between(1, 3)), window, frame},
               {{"onesided", d.chance().Below(2)}});
}

// A scale for all, for places of a dim, or for blocks; and a zero point of its shape.
ValueId Quantise(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const bool back = absl::StartsWith(op, "Dequantize");
  const Dims dims = d.AnyDims(1, 4);
  const int64_t axis = chance.Below(static_cast<int64_t>(dims.size()));
  Dims of_scale;
  if (chance.OneIn(2)) of_scale = {dims[axis]};
  Attributes attributes = {{"axis", axis}};
  const DType bytes = chance.Of({DType::kUInt8, DType::kInt8, DType::kInt16, DType::kUInt16});
  const DType floats = chance.OneIn(4) ? DType::kFloat16 : DType::kFloat32;
  const ValueId x = d.Data(back ? bytes : floats, dims);
  const ValueId scale = d.DataOrFixed(floats, of_scale, "pos");
  const ValueId zero = chance.OneIn(3) ? kNone : d.DataOrFixed(bytes, of_scale, "whole");
  return d.Add(op, {x, scale, zero}, attributes);
}

// Packing makes one of each segment of it.
ValueId DynamicQuantise(RowDraft& d, absl::string_view) {
  const ValueId x = d.Data(DType::kFloat32, d.AnyDims(1, 4));
  const std::vector<ValueId> all = d.AddNode("DynamicQuantizeLinear", {x}, {}, 3);
  if (all.empty() || d.chance().OneIn(4)) return all.empty() ? kNone : all[0];
  if (d.chance().OneIn(4)) return d.Add("DequantizeLinear", {all[0], all[1], all[2]});
  const int64_t width = d.FixedSize(x, d.RankOf(x) - 1);
  if (width < 1 || d.RankOf(x) < 2) return kNone;
  const ValueId sums =
      d.Add("MatMulInteger", {all[0], d.Numbers(DType::kInt8, {width, 3}, -9, 9), all[2]});
  const ValueId floats = d.Add("Cast", {sums}, {{"to", int64_t{1}}});
  return d.Add("Mul", {floats, d.Add("Mul", {all[1], d.Float(0.125)})});
}

ValueId Float8(RowDraft& d, absl::string_view op) {
  const bool scaled = op == "reprise.DequantizeFloat8" || op == "reprise.QuantizeFloat8";
  const bool back = op == "reprise.FromFloat8" || op == "reprise.DequantizeFloat8";
  const Dims dims = d.AnyDims(1, 3);
  const int64_t axis = d.chance().Below(static_cast<int64_t>(dims.size()));
  const ValueId x = d.Data(back ? DType::kUInt8 : DType::kFloat32, dims);
  Attributes attributes = {{"form", d.chance().Between(17, 20)}};
  if (!scaled) return d.Add(op, {x}, attributes);
  attributes.Set("axis", axis);
  Dims of_scale;
  if (d.chance().OneIn(2)) of_scale = {dims[axis]};
  return d.Add(op, {x, d.DataOrFixed(DType::kFloat32, of_scale, "pos")}, attributes);
}

ValueId StoredFloats(RowDraft& d, absl::string_view op) {
  std::vector<int64_t> wanted(d.chance().Between(1, 2), kAny);
  wanted.push_back(34 * d.chance().Between(1, 2));
  return d.Add(op, {d.Data(DType::kUInt8, d.DrawDims(wanted))}, {{"format", std::string("Q8_0")}});
}

constexpr RowCase kProductCases[] = {
    {"MatMul", MatMul},
    {"Gemm", Gemm},
    {"com.microsoft.FusedMatMul", FusedMatMul},
    {"MatMulInteger", MatMulInteger},
    {"QLinearMatMul", QLinearMatMul},
    {"Einsum", Einsum},
    {"Det", Det},
    {"STFT", Stft},
    {"QuantizeLinear", Quantise},
    {"DequantizeLinear", Quantise},
    {"DynamicQuantizeLinear", DynamicQuantise},
    {"reprise.SegmentDynamicQuantizeLinear", DynamicQuantise},
    {"reprise.FromFloat8", Float8},
    {"reprise.ToFloat8", Float8},
    {"reprise.DequantizeFloat8", Float8},
    {"reprise.QuantizeFloat8", Float8},
    {"reprise.StoredFloats", StoredFloats},
};

}  // namespace

absl::Span<const RowCase> ProductCases() { return kProductCases; }

}  // namespace reprise::obligations

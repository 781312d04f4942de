// Ops that passes make, and no model names: their index maps alone are held to.
#include "absl/types/span.h"
#include "tests/fuzz/obligations/row_draft.h"

namespace reprise::obligations {
namespace {

constexpr int64_t kFeatures = 4;

Dims Lines(RowDraft& d, int64_t low, int64_t high, int64_t width) {
  Dims dims = d.AnyDims(low, high);
  dims.push_back(SizeDim(width));
  return dims;
}

ValueId Linear(RowDraft& d, absl::string_view op) {
  const Dims x = Lines(d, 1, 2, kFeatures);
  Dims out = x;
  out.back() = SizeDim(3);
  const DType f32 = DType::kFloat32;
  return d.Add(op,
               {d.Input("x", f32, x), d.Fixed(f32, {kFeatures, 3}),
                d.chance().OneIn(2) ? d.Fixed(f32, {3}) : kNone,
                d.chance().OneIn(2) ? d.Input("x", f32, out) : kNone},
               {{"activation", std::string(d.chance().Of({"none", "relu"}))}});
}

ValueId TurnedPairs(RowDraft& d, absl::string_view op) {
  const Dims x = Lines(d, 2, 3, kFeatures);
  const Dims table = d.chance().OneIn(2) ? x : Dims{x[x.size() - 2], x.back()};
  const DType f32 = DType::kFloat32;
  return d.Add(op,
               {d.Input("x", f32, x), d.Input("unit", f32, table), d.Input("unit", f32, table)});
}

ValueId EmbeddingSum(RowDraft& d, absl::string_view op) {
  const Dims ids = d.AnyDims(1, 2);
  const DType f32 = DType::kFloat32;
  return d.Add(op,
               {d.Fixed(f32, {5, kFeatures}), d.Bounded("index", SizeDim(5), DType::kInt64, ids),
                d.Fixed(f32, {7, kFeatures}),
                d.Bounded("index", SizeDim(7), DType::kInt64,
                          d.chance().OneIn(2) ? ids : Dims{ids.back()})});
}

ValueId Attention(RowDraft& d, absl::string_view op) {
  const Dims q = d.DrawDims({kAny, kAny, kFeatures});
  const Dims keys = {q[0], SizeDim(d.chance().Between(1, 4)), SizeDim(kFeatures)};
  const DType f32 = DType::kFloat32;
  ValueId mask = kNone;
  if (!d.chance().OneIn(3)) {
    const Dim one = SizeDim(1);
    mask =
        d.Input("unit", f32,
                {d.chance().OneIn(2) ? q[0] : one, one, d.chance().OneIn(2) ? q[1] : one, keys[1]});
  }
  return d.Add(op, {d.Input("x", f32, q), d.Input("x", f32, keys), d.Input("x", f32, keys), mask},
               {{"num_heads", int64_t{2}}, {"scale", 0.5f}});
}

ValueId FakeQuantize(RowDraft& d, absl::string_view op) {
  const Dims x = Lines(d, 1, 3, kFeatures);
  const bool by_axis = d.chance().OneIn(2);
  return d.Add(op,
               {d.Input("x", DType::kFloat32, x),
                d.Fixed(DType::kFloat32, by_axis ? Shape{kFeatures} : Shape{}, 0.5, 2)},
               {{"axis", int64_t{-1}}});
}

ValueId Convolution(RowDraft& d, absl::string_view op) {
  const Dims x = d.DrawDims({kAny, 2, 5, 5});
  const DType f32 = DType::kFloat32;
  const bool adds = d.chance().OneIn(2);
  return d.Add(op,
               {d.Input("x", f32, x), d.Fixed(f32, {3, 2, 3, 3}), d.Fixed(f32, {3}),
                adds ? d.Input("x", f32, {x[0], SizeDim(3), SizeDim(3), SizeDim(3)}) : kNone},
               {{"activation", "none"}, {"kernel_shape", std::vector<int64_t>{3, 3}}});
}

ValueId AppendRows(RowDraft& d, absl::string_view op) {
  const Dims rows = d.DrawDims({kAny, 2, 3, kFeatures});
  const DType f32 = DType::kFloat32;
  return d.Add(op,
               {d.Input("x", f32, {rows[0], rows[1], SizeDim(5), rows[3]}), d.Input("x", f32, rows),
                d.Bounded("index", SizeDim(3), DType::kInt64, {rows[0]}), d.Ints({8})});
}

ValueId MaskOfExtents(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Bounded("count", SizeDim(6), DType::kInt32, d.DrawDims({kAny})), d.Ints({6})},
               {{"rank", int64_t{3}}, {"value", -1.0f}});
}

ValueId FilledEnds(RowDraft& d, absl::string_view op) {
  const Dims x = d.DrawDims({kAny, kAny, 6});
  return d.Add(
      op, {d.Input("x", DType::kFloat32, x), d.Bounded("count", SizeDim(6), DType::kInt32, {x[0]})},
      {{"axis", int64_t{2}}, {"value", 0.0f}});
}

ValueId SumOfRanks(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Input("x", DType::kFloat32, d.AnyDims(1, 3))});
}

ValueId ColumnsOfRanks(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Input("x", DType::kFloat32, Lines(d, 1, 2, kFeatures))},
               {{"rank", int64_t{0}}, {"widths", std::vector<int64_t>{kFeatures, 3}}});
}

// Numbers of this rank, or rows for the numbers of another.
ValueId NumbersOfRoot(RowDraft& d, absl::string_view op) {
  const bool is_root = d.chance().OneIn(2);
  return d.Add(op, {d.Input("x", DType::kFloat32, Lines(d, 1, 1, kFeatures))},
               {{"rank", int64_t{1}},
                {"root", int64_t{is_root ? 1 : 0}},
                {"sizes", std::vector<int64_t>{is_root ? kFeatures : 3}}});
}

constexpr RowCase kCases[] = {{"reprise.Linear", Linear},
                              {"reprise.Rotary", TurnedPairs},
                              {"reprise.EmbeddingSum", EmbeddingSum},
                              {"reprise.Attention", Attention},
                              {"reprise.FakeQuantize", FakeQuantize},
                              {"reprise.Conv", Convolution},
                              {"reprise.AppendRows", AppendRows},
                              {"reprise.AllReduce", SumOfRanks},
                              {"reprise.AllGather", ColumnsOfRanks},
                              {"reprise.Broadcast", NumbersOfRoot},
                              {"reprise.LiveMask", MaskOfExtents},
                              {"reprise.LiveFill", FilledEnds}};

}  // namespace

absl::Span<const RowCase> MapCases() { return kCases; }

}  // namespace reprise::obligations

// Reductions, softmaxes, sums along an axis, and normalisations.
#include <algorithm>

#include "absl/types/span.h"
#include "tests/fuzz/obligations/row_draft.h"

namespace reprise::obligations {
namespace {

int64_t DimOf(RowDraft& d, const Dims& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t dim = d.chance().Below(rank);
  return d.chance().OneIn(3) ? dim - rank : dim;
}

ValueId Reduce(RowDraft& d, absl::string_view op) {
  const bool floats = op != "ReduceSum" && op != "ReduceMax" && op != "ReduceMin" &&
                      op != "ReduceProd" && op != "ReduceL1" && op != "ReduceSumSquare";
  const Dims dims = d.AnyDims(1, 4);
  const DType dtype = floats ? d.FloatType() : d.NumberType();
  const ValueId x = d.Data(dtype, dims, op == "ReduceLogSum" ? "pos" : "x");
  std::vector<int64_t> axes;
  for (int64_t dim = 0; dim < static_cast<int64_t>(dims.size()); ++dim) {
    if (!d.chance().OneIn(3)) continue;
    axes.push_back(d.chance().OneIn(4) ? dim - static_cast<int64_t>(dims.size()) : dim);
  }
  if (axes.empty()) axes = {DimOf(d, dims)};
  const bool none = d.chance().OneIn(12);
  return d.Add(op, {x, none ? kNone : d.Ints(axes)},
               {{"keepdims", d.chance().Below(2)},
                {"noop_with_empty_axes", d.chance().OneIn(8) ? int64_t{1} : int64_t{0}}});
}

ValueId ReduceToTheEnd(RowDraft& d, absl::string_view) {
  return Reduce(d, d.chance().Of({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2",
                                  "ReduceLogSumExp"}));
}

ValueId Arg(RowDraft& d, absl::string_view op) {
  const Dims dims = d.AnyDims(1, 4);
  return d.Add(op, {d.Data(d.NumberType(), dims)},
               {{"axis", DimOf(d, dims)},
                {"keepdims", d.chance().Below(2)},
                {"select_last_index", d.chance().Below(2)}});
}

ValueId TopK(RowDraft& d, absl::string_view op) {
  const Dims dims = d.AnyDims(1, 4);
  return d.Add(op, {d.Data(d.NumberType(), dims), d.Ints({d.chance().Between(1, 3)})},
               {{"axis", DimOf(d, dims)}, {"largest", d.chance().Below(2)}}, 2);
}

ValueId Cumulative(RowDraft& d, absl::string_view op) {
  const Dims dims = d.AnyDims(1, 4);
  const DType dtype =
      d.chance().OneIn(4) ? d.chance().Of({DType::kInt32, DType::kInt64}) : d.FloatType();
  return d.Add(op, {d.Data(dtype, dims), d.Int(DimOf(d, dims))},
               {{"exclusive", d.chance().Below(2)}, {"reverse", d.chance().Below(2)}});
}

ValueId Softmax(RowDraft& d, absl::string_view op) {
  const Dims dims = d.AnyDims(1, 5);
  const int64_t axis = d.chance().OneIn(2) ? -1 : DimOf(d, dims);
  return d.Add(op, {d.Data(d.FloatType(), dims)}, {{"axis", axis}});
}

// Gamma, and beta, of the last dims from `axis` on; now and then they are dims of an axis.
ValueId LastDimsNorm(RowDraft& d, absl::string_view op) {
  const Dims dims = d.AnyDims(1, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = d.chance().OneIn(2) ? rank - 1 : d.chance().Below(rank);
  const DType dtype = d.chance().OneIn(4) ? d.FloatType() : DType::kFloat32;
  const Dims last(dims.begin() + axis, dims.end());
  const ValueId x = d.Data(dtype, dims);
  std::vector<ValueId> operands = {x, d.DataOrFixed(dtype, last, "pos")};
  const bool rms = op == "RMSNormalization";
  if (op == "reprise.AddLayerNorm")
    operands.insert(operands.begin() + 1,
                    d.Data(dtype, d.chance().OneIn(3) ? d.Beside(dims) : dims));
  if (!rms && d.chance().OneIn(2)) operands.push_back(d.DataOrFixed(dtype, last));
  const size_t outputs = op == "LayerNormalization" ? d.chance().Of({1, 1, 2, 3})
                         : rms                      ? 1
                                                    : d.chance().Between(1, 2);
  return d.Add(op, operands,
               {{"axis", d.chance().OneIn(2) ? axis : axis - rank}, {"epsilon", 1e-3f}}, outputs);
}

ValueId SkipNorm(RowDraft& d, absl::string_view op) {
  const int64_t width = d.chance().Between(2, 4);
  const DType dtype = d.chance().OneIn(4) ? DType::kFloat16 : DType::kFloat32;
  const bool flat = d.chance().OneIn(4);
  const Dims dims = flat ? d.DrawDims({kAny, width}) : d.DrawDims({kAny, kAny, width});
  Dims skip = dims;
  if (!flat && d.chance().OneIn(3)) skip[0] = SizeDim(1);
  if (!flat && d.chance().OneIn(6)) skip.erase(skip.begin());
  std::vector<ValueId> operands = {d.Data(dtype, dims), d.DataOrFixed(dtype, skip),
                                   d.Fixed(dtype, {width})};
  const bool simplified = op == "com.microsoft.SkipSimplifiedLayerNormalization";
  if (!simplified) operands.push_back(d.chance().OneIn(2) ? d.Fixed(dtype, {width}) : kNone);
  operands.push_back(d.chance().OneIn(2) ? d.Fixed(dtype, {width}) : kNone);
  if (d.chance().OneIn(2)) return d.Add(op, operands, {{"epsilon", 1e-3f}});
  return d.Add(op, operands, {{"epsilon", 1e-3f}}, 4);
}

ValueId ChannelNorm(RowDraft& d, absl::string_view op) {
  const int64_t channels = d.chance().Of({1, 2, 4});
  std::vector<int64_t> wanted = {kAny, channels};
  const int64_t least = op == "BatchNormalization" ? 0 : 1;
  for (int64_t i = d.chance().Between(least, 2); i > 0; --i) wanted.push_back(kAny);
  if (op == "LRN" && d.chance().OneIn(4)) wanted[1] = kAny;
  const DType dtype = d.chance().OneIn(4) ? d.FloatType() : DType::kFloat32;
  const ValueId x = d.Data(dtype, d.DrawDims(wanted));
  const Shape shape = {channels};
  if (op == "LRN") {
    return d.Add(
        op, {x},
        {{"size", d.chance().Between(1, 4)}, {"alpha", 0.5f}, {"beta", 0.75f}, {"bias", 1.0f}});
  }
  if (op == "BatchNormalization") {
    return d.Add(op, {x, d.Fixed(dtype, shape), d.Fixed(dtype, shape), d.Fixed(dtype, shape),
                      d.Fixed(dtype, shape, 0.5, 2)});
  }
  Attributes attributes = {{"epsilon", 1e-3f}};
  if (op == "GroupNormalization") {
    attributes.Set("num_groups", d.chance().OneIn(2) ? channels : int64_t{1});
  }
  const Dims scale = {SizeDim(channels)};
  return d.Add(op, {x, d.DataOrFixed(dtype, scale), d.DataOrFixed(dtype, scale)}, attributes);
}

constexpr RowCase kReduceCases[] = {
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
    {"ArgMax", Arg},
    {"ArgMin", Arg},
    {"TopK", TopK},
    {"CumSum", Cumulative},
    {"CumProd", Cumulative},
    {"Softmax", Softmax},
    {"LogSoftmax", Softmax},
    {"Hardmax", Softmax},
    {"LayerNormalization", LastDimsNorm},
    {"RMSNormalization", LastDimsNorm},
    {"reprise.AddLayerNorm", LastDimsNorm},
    {"com.microsoft.SkipLayerNormalization", SkipNorm},
    {"com.microsoft.SkipSimplifiedLayerNormalization", SkipNorm},
    {"BatchNormalization", ChannelNorm},
    {"InstanceNormalization", ChannelNorm},
    {"GroupNormalization", ChannelNorm},
    {"LRN", ChannelNorm},
    // Where rows end: made for others.
    {"reprise.LiveExtent", ReduceToTheEnd},
    {"reprise.LiveFill", ReduceToTheEnd},
};

}  // namespace

absl::Span<const RowCase> ReduceCases() { return kReduceCases; }

}  // namespace reprise::obligations

// Convolutions, pools, recurrent layers, sampled planes, and ops that end where rows end.
#include <algorithm>
#include <string>

#include "absl/types/span.h"
#include "tests/fuzz/obligations/row_draft.h"

namespace reprise::obligations {
namespace {

// [batch, channels, dims...].
Dims DrawPlanes(RowDraft& d, int64_t channels, int64_t least = 1, int64_t most = 2) {
  std::vector<int64_t> wanted = {kAny, channels};
  for (int64_t i = d.chance().Between(least, most); i > 0; --i) wanted.push_back(kAny);
  Dims dims = d.DrawDims(wanted);
  for (size_t i = 2; i < dims.size(); ++i) {
    if (dims[i].is_constant()) dims[i].size += 2;
  }
  return dims;
}

Attributes Window(RowDraft& d, size_t dims) {
  Chance& chance = d.chance();
  std::vector<int64_t> kernel, pads(2 * dims), strides, dilations;
  for (size_t i = 0; i < dims; ++i) {
    kernel.push_back(chance.Of({1, 2, 3, 3}));
    strides.push_back(chance.OneIn(3) ? chance.Of({2, 2, 3}) : 1);
    dilations.push_back(chance.OneIn(5) ? 2 : 1);
    pads[i] = chance.OneIn(2) ? (kernel[i] - 1) / 2 : 0;
    pads[i + dims] = chance.OneIn(4) ? kernel[i] - 1 : pads[i];
    if (chance.OneIn(12)) (chance.OneIn(2) ? pads[i] : pads[i + dims]) += 1;
  }
  Attributes attributes = {
      {"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}};
  if (chance.OneIn(4)) {
    attributes.Set("auto_pad", std::string(chance.Of({"SAME_UPPER", "SAME_LOWER", "VALID"})));
  } else {
    attributes.Set("pads", pads);
  }
  return attributes;
}

ValueId Conv(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const int64_t channels = chance.Of({1, 2, 4});
  const Dims dims = DrawPlanes(d, channels);
  Attributes attributes = Window(d, dims.size() - 2);
  const int64_t group = chance.OneIn(3) ? channels : 1;
  attributes.Set("group", group);
  const int64_t out = group == 1 ? chance.Of({1, 2, 4}) : channels;
  const bool transposed = op == "ConvTranspose";
  if (transposed && chance.OneIn(3)) {
    std::vector<int64_t> more(dims.size() - 2);
    const std::vector<int64_t> strides = attributes.Ints("strides");
    for (size_t i = 0; i < more.size(); ++i) more[i] = strides[i] > 1 ? 1 : 0;
    attributes.Set("output_padding", more);
  }
  Dims weight = transposed ? Dims{SizeDim(channels), SizeDim(out / group)}
                           : Dims{SizeDim(out), SizeDim(channels / group)};
  for (const int64_t size : attributes.Ints("kernel_shape")) weight.push_back(SizeDim(size));
  const DType dtype = chance.OneIn(5) ? d.FloatType() : DType::kFloat32;
  return d.Add(op,
               {d.Data(dtype, dims), d.DataOrFixed(dtype, weight),
                chance.OneIn(2) ? d.DataOrFixed(dtype, {SizeDim(out)}) : kNone},
               attributes);
}

ValueId Pool(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const Dims dims = DrawPlanes(d, chance.OneIn(4) ? kAny : chance.Between(1, 3));
  Attributes attributes = Window(d, dims.size() - 2);
  attributes.Set("ceil_mode", chance.OneIn(3) ? int64_t{1} : 0);
  if (op == "AveragePool") attributes.Set("count_include_pad", chance.Below(2));
  if (op == "LpPool") attributes.Set("p", chance.Between(1, 3));
  const DType dtype = chance.OneIn(5) ? d.FloatType() : DType::kFloat32;
  return d.Add(op, {d.Data(dtype, dims)}, attributes, op == "MaxPool" && chance.OneIn(3) ? 2 : 1);
}

ValueId GlobalPool(RowDraft& d, absl::string_view op) {
  const Dims dims = d.AnyDims(3, 4);
  Attributes attributes;
  if (op == "GlobalLpPool") attributes.Set("p", d.chance().Between(1, 3));
  return d.Add(op, {d.Data(d.chance().OneIn(4) ? d.FloatType() : DType::kFloat32, dims)},
               attributes);
}

// (x, W, R, B?, lengths?, first states?).
ValueId Recurrent(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const int64_t size = chance.Between(1, 3), hidden = chance.Between(1, 3);
  const int64_t layout = chance.Below(2);
  Dims dims = d.DrawDims({kAny, kAny, size});
  if (layout == 0) std::swap(dims[0], dims[1]);
  const Dim time = dims[layout == 0 ? 0 : 1], rows = dims[layout == 0 ? 1 : 0];
  const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  const std::string direction = chance.Of({"forward", "forward", "reverse", "bidirectional"});
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const DType dtype = DType::kFloat32;
  const ValueId x = d.Data(dtype, dims);
  ValueId lengths = kNone;
  if (chance.OneIn(4)) {
    lengths = d.Bounded("some", time, DType::kInt32, {rows});
  } else if (chance.OneIn(3)) {
    const ValueId sizes = d.Add("Shape", {x});
    const ValueId of_rows = d.Add("Gather", {sizes, d.Ints({layout == 0 ? 1 : 0})});
    const ValueId length = d.Add("Gather", {sizes, d.Ints({layout == 0 ? 0 : 1})});
    lengths = d.Add("Cast", {d.Add("Expand", {length, of_rows})}, {{"to", int64_t{6}}});
  }
  std::vector<ValueId> operands = {
      x, d.Fixed(dtype, {directions, gates * hidden, size}, -1, 1),
      d.Fixed(dtype, {directions, gates * hidden, hidden}, -1, 1),
      chance.OneIn(2) ? d.Fixed(dtype, {directions, 2 * gates * hidden}, -1, 1) : kNone, lengths};
  if (chance.OneIn(4)) {
    const Dims state = layout == 0 ? Dims{SizeDim(directions), rows, SizeDim(hidden)}
                                   : Dims{rows, SizeDim(directions), SizeDim(hidden)};
    operands.push_back(d.DataOrFixed(dtype, state));
    if (op == "LSTM") operands.push_back(d.DataOrFixed(dtype, state));
  }
  Attributes attributes = {{"hidden_size", hidden}, {"direction", direction}, {"layout", layout}};
  if (op == "GRU") attributes.Set("linear_before_reset", chance.Below(2));
  return d.Add(op, operands, attributes, chance.Between(1, op == "LSTM" ? 3 : 2));
}

ValueId Resize(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const Dims dims = DrawPlanes(d, chance.Between(1, 2));
  const ValueId x = d.Data(DType::kFloat32, dims);
  const auto rank = static_cast<int64_t>(dims.size());
  Attributes attributes = {
      {"mode", std::string(chance.Of({"nearest", "nearest", "linear", "cubic"}))},
      {"nearest_mode",
       std::string(chance.Of({"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}))},
      {"coordinate_transformation_mode",
       std::string(
           chance.Of({"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"}))}};
  if (chance.OneIn(6)) attributes.Set("antialias", int64_t{1});
  const int64_t dim = chance.Between(2, rank - 1);
  if (chance.OneIn(3)) {
    attributes.Set("axes", std::vector<int64_t>{dim});
    if (chance.OneIn(2))
      return d.Add(op, {x, kNone, kNone, d.Ints({chance.Between(2, 6)})}, attributes);
    const ValueId size = d.Add("Gather", {d.Add("Shape", {x}), d.Ints({dim})});
    return d.Add(op, {x, kNone, kNone, d.Add("Mul", {size, d.Ints({2})})}, attributes);
  }
  std::vector<float> scales(dims.size(), 1);
  scales[dim] = chance.Of({2.0f, 2.0f, 3.0f, 1.5f, 0.5f, 1.0f});
  return d.Add(op, {x, kNone, d.Constant(Tensor::FromVector(DType::kFloat32, {rank}, scales))},
               attributes);
}

Attributes Sampling(RowDraft& d) {
  Chance& chance = d.chance();
  return {{"mode", std::string(chance.Of({"linear", "nearest", "cubic"}))},
          {"padding_mode", std::string(chance.Of({"zeros", "border", "reflection"}))},
          {"align_corners", chance.Below(2)}};
}

ValueId GridSample(RowDraft& d, absl::string_view op) {
  const Dims dims = DrawPlanes(d, d.chance().Between(1, 2), 2, 2);
  Dims grid = d.DrawDims({1, kAny, kAny, 2});
  grid[0] = dims[0];
  return d.Add(op, {d.Data(DType::kFloat32, dims), d.DataOrFixed(DType::kFloat32, grid, "unit")},
               Sampling(d));
}

ValueId AffineGrid(RowDraft& d, absl::string_view op) {
  const Dims dims = d.DrawDims({kAny, 2, 3});
  const ValueId theta = d.Data(DType::kFloat32, dims);
  const ValueId rows = d.Add("Shape", {theta}, {{"end", int64_t{1}}, {"start", int64_t{0}}});
  ValueId height = d.Ints({3});
  if (d.chance().OneIn(2)) {  // an axis of another input
    const ValueId other = d.Input("x", DType::kFloat32, {dims[0], {.symbol = kAxis}});
    height = d.Add("Shape", {other}, {{"start", int64_t{1}}});
  }
  const ValueId sizes =
      d.Add("Concat", {rows, d.Ints({1}), height, d.Ints({2})}, {{"axis", int64_t{0}}});
  return d.Add(op, {theta, sizes}, {{"align_corners", d.chance().Below(2)}});
}

ValueId Col2Im(RowDraft& d, absl::string_view op) {
  const Dims dims =
      d.DrawDims({kAny, 4 * d.chance().Between(1, 2), d.chance().OneIn(3) ? kAny : 4});
  const ValueId x = d.Data(DType::kFloat32, dims);
  if (dims[2].is_constant()) return d.Add(op, {x, d.Ints({3, 3}), d.Ints({2, 2})});
  // One block fewer than the image is wide.
  const ValueId blocks = d.Add("Shape", {x}, {{"start", int64_t{2}}});
  const ValueId width = d.Add("Add", {blocks, d.Ints({1})});
  return d.Add(op,
               {x, d.Add("Concat", {d.Ints({2}), width}, {{"axis", int64_t{0}}}), d.Ints({2, 2})});
}

ValueId MaxUnpool(RowDraft& d, absl::string_view op) {
  Dims dims = DrawPlanes(d, d.chance().Between(1, 2), 2, 2);
  const ValueId x = d.Data(DType::kFloat32, dims);
  const Attributes window = {{"kernel_shape", std::vector<int64_t>{2, 2}},
                             {"strides", std::vector<int64_t>{2, 2}}};
  const std::vector<ValueId> pooled = d.AddNode("MaxPool", {x}, window, 2);
  return pooled.empty() ? kNone : d.Add(op, {pooled[0], pooled[1]}, window);
}

ValueId RoiAlign(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const Dims dims = DrawPlanes(d, chance.Between(1, 2), 2, 2);
  const Dim regions = chance.OneIn(2) ? Dim{.symbol = kOther} : SizeDim(2);
  return d.Add(
      op,
      {d.Data(DType::kFloat32, dims), d.DataOrFixed(DType::kFloat32, {regions, SizeDim(4)}, "pos"),
       d.Bounded("index", dims[0], DType::kInt64, {regions})},
      {{"output_height", int64_t{2}},
       {"output_width", int64_t{2}},
       {"sampling_ratio", chance.Below(3)},
       {"mode", std::string(chance.Of({"avg", "max"}))}});
}

ValueId DeformConv(RowDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const int64_t channels = chance.Of({1, 2});
  const Dims dims = DrawPlanes(d, channels, 2, 2);
  const int64_t kernel = chance.Of({1, 3});
  const std::vector<int64_t> kernels = {kernel, kernel}, pads(4, (kernel - 1) / 2);
  // The places are as many as the elements are.
  Dims offset = dims, mask = dims;
  offset[1] = SizeDim(2 * kernel * kernel);
  mask[1] = SizeDim(kernel * kernel);
  const Attributes attributes = {{"kernel_shape", kernels}, {"pads", pads}};
  const DType dtype = DType::kFloat32;
  const ValueId x = d.Data(dtype, dims), places = d.Data(dtype, offset);
  const ValueId masks = chance.OneIn(2) ? d.Data(dtype, mask) : kNone;
  if (op == "reprise.DeformColumns") return d.Add(op, {x, places, masks}, attributes);
  return d.Add(op, {x, d.Fixed(dtype, {2, channels, kernel, kernel}), places, kNone, masks},
               attributes);
}

// Scores of four dims get a mask where rows end.
ValueId LiveMask(RowDraft& d, absl::string_view) {
  const Dims dims = d.DrawDims({kAny, kAny, kAny, kAny});
  return d.Add("Softmax", {d.Data(DType::kFloat32, dims)}, {{"axis", int64_t{-1}}});
}

// Averages over windows that look past the end.
ValueId LiveShare(RowDraft& d, absl::string_view) { return Pool(d, "AveragePool"); }

// Dims that became one, in an answer, after nodes that look past the end.
ValueId LiveCompact(RowDraft& d, absl::string_view) {
  Chance& chance = d.chance();
  const int64_t channels = chance.Between(1, 2);
  Dims dims = {{.symbol = kBatch}, SizeDim(channels), {.symbol = kAxis}};
  if (chance.OneIn(2)) dims.push_back({.symbol = kOther});
  const auto axes = static_cast<int64_t>(dims.size()) - 2;
  Shape weight = {chance.Between(1, 2), channels};
  weight.resize(dims.size(), 3);
  const ValueId x = d.Add("Exp", {d.Input("x", DType::kFloat32, dims)});
  const ValueId maps = d.Add("Conv", {x, d.Fixed(DType::kFloat32, weight)},
                             {{"pads", std::vector<int64_t>(2 * axes, 1)},
                              {"strides", std::vector<int64_t>(axes, chance.Between(1, 2))}});
  if (chance.OneIn(2)) return d.Add("Reshape", {maps, d.Ints({0, -1})});
  return d.Add("Reshape", {maps, d.Ints({0, weight[0], -1})});
}

constexpr RowCase kLayerCases[] = {
    {"Conv", Conv},
    {"ConvTranspose", Conv},
    {"AveragePool", Pool},
    {"MaxPool", Pool},
    {"LpPool", Pool},
    {"GlobalAveragePool", GlobalPool},
    {"GlobalMaxPool", GlobalPool},
    {"GlobalLpPool", GlobalPool},
    {"LSTM", Recurrent},
    {"GRU", Recurrent},
    {"RNN", Recurrent},
    {"Resize", Resize},
    {"GridSample", GridSample},
    {"AffineGrid", AffineGrid},
    {"Col2Im", Col2Im},
    {"MaxUnpool", MaxUnpool},
    {"RoiAlign", RoiAlign},
    {"DeformConv", DeformConv},
    {"reprise.DeformColumns", DeformConv},
    {"reprise.LiveMask", LiveMask},
    {"reprise.LiveShare", LiveShare},
    {"reprise.LiveCompact", LiveCompact},
};

}  // namespace

absl::Span<const RowCase> LayerCases() { return kLayerCases; }

}  // namespace reprise::obligations

// Ops that few models have: each with the operands that it needs.
#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/op_templates.h"

namespace reprise::fuzz {
namespace {

// Returns `x` with another number of features: [..., features].
ValueId WithFeatures(ModelDraft& d, ValueId x, int64_t features) {
  if (x == kNone) return kNone;
  const int64_t width = d.FixedSize(x, d.RankOf(x) - 1);
  if (width < 1) return kNone;
  return d.Add("Tanh", {d.Add("MatMul", {x, d.Weight({width, features}, width)})});
}

// Planes [batch, channels, height, width] of few channels.
ValueId PickPlanes(ModelDraft& d) {
  return d.Pick([&](ValueId id) {
    return d.TypeOf(id) == DType::kFloat32 && d.RankOf(id) == 4 && d.FixedSize(id, 1) > 0 &&
           d.FixedSize(id, 1) <= 16;
  });
}

ValueId BatchOf(ModelDraft& d, ValueId x) {
  return d.Add("Shape", {x}, {{"end", int64_t{1}}, {"start", int64_t{0}}});
}

bool Det(ModelDraft& d, absl::string_view op) {
  const ValueId numbers = WithFeatures(d, d.PickFloat(2, 3), 4);
  if (numbers == kNone) return false;
  const ValueId squares = d.RankOf(numbers) == 2
                              ? d.Add("Reshape", {numbers, d.Ints({0, 2, 2})})
                              : d.Add("Reshape", {numbers, d.Ints({0, 0, 2, 2})});
  return squares != kNone && d.Add(op, {squares}) != kNone;
}

bool Stft(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(2, 2);
  if (x == kNone) return false;
  const ValueId signal = d.Add("Unsqueeze", {x, d.Ints({-1})});
  return signal != kNone && d.Add(op, {signal, d.Int(2), kNone, d.Int(4)}) != kNone;
}

bool Mel(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1);
  const ValueId weights = d.Add(op, {d.Int(4), d.Int(16), d.Int(8000), d.Float(0), d.Float(4000)});
  if (x == kNone || weights == kNone) return false;
  const ValueId mean = d.Add("ReduceMean", {weights}, {{"keepdims", int64_t{0}}});
  return mean != kNone && d.Add("Mul", {x, mean}) != kNone;
}

bool AffineGrid(ModelDraft& d, absl::string_view op) {
  const ValueId x = PickPlanes(d);
  if (x == kNone) return false;
  const ValueId batch = BatchOf(d, x);
  const ValueId turns = d.Add("Concat", {batch, d.Ints({2, 3})}, {{"axis", int64_t{0}}});
  const ValueId theta = d.Add("Expand", {d.Numbers(DType::kFloat32, {1, 2, 3}, -1, 1), turns});
  const ValueId sizes = d.Add("Concat", {batch, d.Ints({1, 3, 2})}, {{"axis", int64_t{0}}});
  const ValueId grid = d.Add(op, {theta, sizes}, {{"align_corners", d.chance().Below(2)}});
  return grid != kNone && d.Add("GridSample", {x, grid}) != kNone;
}

bool Col2Im(ModelDraft& d, absl::string_view op) {
  const ValueId numbers = WithFeatures(d, d.PickFloat(2, 2), 16);
  if (numbers == kNone) return false;
  const ValueId columns = d.Add("Reshape", {numbers, d.Ints({0, 4, 4})});
  return columns != kNone && d.Add(op, {columns, d.Ints({3, 3}), d.Ints({2, 2})}) != kNone;
}

bool MaxUnpool(ModelDraft& d, absl::string_view op) {
  const ValueId x = PickPlanes(d);
  if (x == kNone) return false;
  const Attributes window = {{"kernel_shape", std::vector<int64_t>{2, 2}},
                             {"strides", std::vector<int64_t>{2, 2}}};
  const std::vector<ValueId> pooled = d.AddNode("MaxPool", {x}, window, 2);
  return !pooled.empty() && d.Add(op, {pooled[0], pooled[1]}, window) != kNone;
}

bool DeformConv(ModelDraft& d, absl::string_view op) {
  const ValueId x = PickPlanes(d);
  if (x == kNone) return false;
  const int64_t channels = d.FixedSize(x, 1);
  const ValueId offset =
      d.Add("Tanh", {d.Add("Conv", {x, d.Weight({2, channels, 1, 1}, channels)})});
  return offset != kNone && d.Add(op, {x, d.Weight({3, channels, 1, 1}, channels), offset},
                                  {{"kernel_shape", std::vector<int64_t>{1, 1}}}) != kNone;
}

constexpr OpTemplate kRareTemplates[] = {
    {"Det", Det},
    {"STFT", Stft},
    {"MelWeightMatrix", Mel},
    {"AffineGrid", AffineGrid},
    {"Col2Im", Col2Im},
    {"MaxUnpool", MaxUnpool},
    {"DeformConv", DeformConv},
};

}  // namespace

absl::Span<const OpTemplate> RareTemplates() { return kRareTemplates; }

}  // namespace reprise::fuzz

// Ops that move elements, and views.
#include <algorithm>
#include <numeric>

#include "tests/fuzz/random_models/op_templates.h"

namespace reprise::fuzz {
namespace {

// Returns a float of the given rank, rarely of another dtype.
ValueId Something(ModelDraft& d, int64_t low, int64_t high = 5) {
  if (!d.chance().OneIn(5)) return d.PickFloat(low, high);
  return d.Pick([&](ValueId id) { return d.RankOf(id) >= low && d.RankOf(id) <= high; });
}

int64_t AnyDim(ModelDraft& d, ValueId x) { return d.chance().Below(d.RankOf(x)); }
// Counted from the end where chance wants it.
int64_t Signed(ModelDraft& d, ValueId x, int64_t dim) {
  return d.chance().OneIn(2) ? dim : dim - d.RankOf(x);
}

bool Transpose(ModelDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 2);
  if (x == kNone) return false;
  std::vector<int64_t> order(d.RankOf(x));
  std::iota(order.begin(), order.end(), 0);
  const int64_t a = AnyDim(d, x), b = AnyDim(d, x);
  std::swap(order[a], order[b]);
  return d.Add(op, {x}, {{"perm", order}}) != kNone;
}

// Dims are kept, merged or split; one may be left to be found.
bool Reshape(ModelDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 1);
  if (x == kNone) return false;
  Chance& chance = d.chance();
  const int64_t rank = d.RankOf(x);
  std::vector<int64_t> shape(rank, 0);
  const int64_t dim = AnyDim(d, x);
  const int64_t size = d.FixedSize(x, dim);
  if (size > 0 && size % 2 == 0 && chance.OneIn(2)) {  // heads
    shape[dim] = 2;
    shape.insert(shape.begin() + dim + chance.Below(2), dim + 1 == rank ? -1 : size / 2);
    if (std::count(shape.begin(), shape.end(), 0) > dim) {
      for (int64_t i = dim + 2; i <= rank; ++i) {
        shape[i] = d.FixedSize(x, i - 1);
        if (shape[i] < 0) return false;
      }
    }
    return d.Add(op, {x, d.Ints(shape)}) != kNone;
  }
  if (rank >= 2 && chance.OneIn(2)) {  // two dims become one
    const int64_t first = chance.Below(rank - 1);
    shape.clear();
    bool has_free = false;
    for (int64_t i = 0; i < rank; ++i) {
      if (i == first + 1) continue;
      if (i == first) {
        shape.push_back(-1);
        has_free = true;
      } else {
        const int64_t kept = d.FixedSize(x, i);
        shape.push_back(i < first ? 0 : kept);
      }
    }
    if (std::count(shape.begin(), shape.end(), -1) > 1) return false;
    return has_free && d.Add(op, {x, d.Ints(shape)}) != kNone;
  }
  // To the shape of another value, or flat.
  if (chance.OneIn(2)) return d.Add(op, {x, d.Ints({-1})}) != kNone;
  const ValueId like = d.PickFloat(1);
  return like != kNone && d.Add(op, {x, d.Add("Shape", {like})}) != kNone;
}

bool Squeeze(ModelDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 1, 4);
  if (x == kNone) return false;
  const ValueId made = d.Add("Unsqueeze", {x, d.Ints({Signed(d, x, AnyDim(d, x))})});
  if (op == "Unsqueeze") return made != kNone;
  for (int64_t dim = 0; dim < d.RankOf(x); ++dim) {
    if (d.FixedSize(x, dim) == 1) return d.Add(op, {x, d.Ints({dim})}) != kNone;
  }
  // Something in between, or the pair goes at once.
  const ValueId y = d.Add("Tanh", {made});
  if (y == kNone) return false;
  for (int64_t dim = 0; dim < d.RankOf(y); ++dim) {
    if (d.FixedSize(y, dim) == 1) return d.Add(op, {y, d.Ints({dim})}) != kNone;
  }
  return false;
}

bool Flatten(ModelDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 1);
  return x != kNone && d.Add(op, {x}, {{"axis", d.chance().Between(0, d.RankOf(x))}}) != kNone;
}

bool Concat(ModelDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 1);
  if (x == kNone) return false;
  const int64_t axis = AnyDim(d, x);
  std::vector<ValueId> parts = {x};
  const ValueId y = d.Pick(
      [&](ValueId id) { return d.TypeOf(id) == d.TypeOf(x) && d.RankOf(id) == d.RankOf(x); });
  parts.push_back(y);
  if (d.chance().OneIn(2)) std::swap(parts[0], parts[1]);
  return d.Add(op, parts, {{"axis", Signed(d, x, axis)}}) != kNone;
}

bool Split(ModelDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 1);
  if (x == kNone) return false;
  const int64_t axis = AnyDim(d, x);
  const int64_t size = d.FixedSize(x, axis);
  const Attributes attributes = {{"axis", Signed(d, x, axis)}};
  if (size > 1) {
    const int64_t first = d.chance().Between(1, size - 1);
    return !d.AddNode(op, {x, d.Ints({first, size - first})}, attributes, 2).empty();
  }
  Attributes halves = attributes;
  halves.Set("num_outputs", int64_t{2});
  return !d.AddNode(op, {x}, halves, 2).empty();
}

bool Slice(ModelDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 1);
  if (x == kNone) return false;
  Chance& chance = d.chance();
  const int64_t axis = AnyDim(d, x);
  const int64_t least = d.SmallestSize(x, axis);
  const int64_t start = chance.Of({int64_t{0}, int64_t{0}, int64_t{1}, -least, int64_t{-1}});
  const int64_t end = chance.Of({int64_t{1}, least, int64_t{-1}, int64_t{1} << 40});
  const int64_t step = chance.OneIn(5) ? chance.Of({2, 3}) : 1;
  if (chance.OneIn(8)) {  // backwards
    return d.Add(op, {x, d.Ints({-1}), d.Ints({INT64_MIN}), d.Ints({axis}), d.Ints({-1})}) != kNone;
  }
  return d.Add(op, {x, d.Ints({start}), d.Ints({end}), d.Ints({axis}), d.Ints({step})}) != kNone;
}

bool Expand(ModelDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 0, 4);
  if (x == kNone) return false;
  if (d.chance().OneIn(2)) {
    const ValueId like = d.PickFloat(1);
    return like != kNone && d.Add(op, {x, d.Add("Shape", {like})}) != kNone;
  }
  std::vector<int64_t> shape(d.RankOf(x) + 1, 1);
  shape[0] = d.chance().Between(1, 3);
  return d.Add(op, {x, d.Ints(shape)}) != kNone;
}

bool Tile(ModelDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 1, 4);
  if (x == kNone) return false;
  std::vector<int64_t> repeats(d.RankOf(x), 1);
  repeats[AnyDim(d, x)] = 2;
  return d.Add(op, {x, d.Ints(repeats)}) != kNone;
}

bool Pad(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1, 4);
  if (x == kNone) return false;
  Chance& chance = d.chance();
  const int64_t axis = AnyDim(d, x);
  const std::string mode = chance.Of({"constant", "constant", "edge", "reflect", "wrap"});
  const ValueId pads =
      d.Ints({chance.Between(mode == "constant" ? -1 : 0, 2), chance.Between(0, 2)});
  return d.Add(op, {x, pads, mode == "constant" ? d.Float(0.5) : kNone, d.Ints({axis})},
               {{"mode", mode}}) != kNone;
}

bool Trilu(ModelDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 2);
  if (x == kNone) return false;
  return d.Add(op, {x, d.chance().OneIn(2) ? d.Int(d.chance().Between(-2, 2)) : kNone},
               {{"upper", d.chance().Below(2)}}) != kNone;
}

// A value of four dims with channels that `block` divides.
bool Blocks(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(4, 4);
  if (x == kNone) return false;
  if (op == "DepthToSpace") {
    return d.Add(op, {x},
                 {{"blocksize", int64_t{2}},
                  {"mode", std::string(d.chance().Of({"DCR", "CRD"}))}}) != kNone;
  }
  // Whatever the sizes are, twice of them is even.
  const ValueId even = d.Add("Tile", {x, d.Ints({1, 1, 2, 2})});
  return even != kNone && d.Add(op, {even}, {{"blocksize", int64_t{2}}}) != kNone;
}

bool Resize(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(3, 4);
  if (x == kNone) return false;
  Chance& chance = d.chance();
  std::vector<float> scales(d.RankOf(x), 1.0f);
  scales.back() = chance.Of({2.0f, 0.5f, 1.5f, 3.0f});
  if (d.RankOf(x) == 4) scales[2] = chance.Of({1.0f, 2.0f, 0.5f});
  const Attributes attributes = {
      {"mode", std::string(chance.Of({"nearest", "linear", "cubic"}))},
      {"coordinate_transformation_mode",
       std::string(chance.Of({"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"}))},
      {"nearest_mode", std::string(chance.Of({"round_prefer_floor", "floor", "ceil"}))}};
  const auto rank = static_cast<int64_t>(scales.size());
  return d.Add(op, {x, kNone, d.Constant(Tensor::FromVector(DType::kFloat32, {rank}, scales))},
               attributes) != kNone;
}

bool ReverseSequence(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(2);
  if (x == kNone) return false;
  const int64_t batch = d.chance().Below(2);
  // The length of each row: all of them, or half.
  const ValueId sizes = d.Add("Shape", {x});
  const ValueId rows = d.Add("Gather", {sizes, d.Ints({batch})}, {{"axis", int64_t{0}}});
  ValueId length = d.Add("Gather", {sizes, d.Ints({1 - batch})}, {{"axis", int64_t{0}}});
  if (d.chance().OneIn(2)) length = d.Add("Div", {length, d.Int(2)});
  const ValueId lengths = d.Add("Expand", {length, rows});
  return lengths != kNone &&
         d.Add(op, {x, lengths}, {{"batch_axis", batch}, {"time_axis", 1 - batch}}) != kNone;
}

bool GridSample(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(4, 4);
  if (x == kNone) return false;
  Chance& chance = d.chance();
  const ValueId batch = d.Add("Shape", {x}, {{"end", int64_t{1}}});
  const ValueId shape = d.Add("Concat", {batch, d.Ints({3, 2, 2})}, {{"axis", int64_t{0}}});
  const ValueId grid = d.Add("Expand", {d.Numbers(DType::kFloat32, {1, 3, 2, 2}, -1, 1), shape});
  return grid != kNone &&
         d.Add(op, {x, grid},
               {{"mode", std::string(chance.Of({"linear", "nearest", "cubic"}))},
                {"padding_mode", std::string(chance.Of({"zeros", "border", "reflection"}))},
                {"align_corners", chance.Below(2)}}) != kNone;
}

bool RoiAlign(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(4, 4);
  if (x == kNone) return false;
  const ValueId rois = d.Numbers(DType::kFloat32, {2, 4}, 0, 4);
  return d.Add(op, {x, rois, d.Ints({0, 0})},
               {{"output_height", int64_t{2}},
                {"output_width", int64_t{2}},
                {"mode", std::string(d.chance().Of({"avg", "max"}))},
                {"spatial_scale", 1.0f},
                {"sampling_ratio", int64_t{2}}}) != kNone;
}

constexpr OpTemplate kMovementTemplates[] = {
    {"Transpose", Transpose},
    {"Transpose", Transpose},
    {"Reshape", Reshape},
    {"Reshape", Reshape},
    {"Squeeze", Squeeze},
    {"Unsqueeze", Squeeze},
    {"Flatten", Flatten},
    {"Concat", Concat},
    {"Concat", Concat},
    {"Split", Split},
    {"Slice", Slice},
    {"Slice", Slice},
    {"Expand", Expand},
    {"Tile", Tile},
    {"Pad", Pad},
    {"Trilu", Trilu},
    {"DepthToSpace", Blocks},
    {"SpaceToDepth", Blocks},
    {"Resize", Resize},
    {"ReverseSequence", ReverseSequence},
    {"GridSample", GridSample},
    {"RoiAlign", RoiAlign},
};

}  // namespace

absl::Span<const OpTemplate> MovementTemplates() { return kMovementTemplates; }

}  // namespace reprise::fuzz

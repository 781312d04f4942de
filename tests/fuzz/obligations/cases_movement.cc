// Ops that move elements, views, and ops that take and put elements by index.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tests/fuzz/obligations/row_draft.h"

namespace reprise::obligations {
namespace {

int64_t AnyDim(RowDraft& d, ValueId x) {
  return d.chance().Below(std::max<int64_t>(d.RankOf(x), 1));
}
int64_t Signed(RowDraft& d, ValueId x, int64_t dim) {
  return d.chance().OneIn(3) ? dim - d.RankOf(x) : dim;
}
ValueId Something(RowDraft& d, int64_t low, int64_t high) {
  return d.Data(d.AnyType(), d.AnyDims(low, high));
}

// Returns the size of dim `dim` as a value [1]; a constant where it is one.
ValueId SizeOf(RowDraft& d, ValueId x, int64_t dim) {
  const int64_t fixed = d.FixedSize(x, dim);
  if (fixed >= 0 && d.chance().OneIn(2)) return d.Ints({fixed});
  return d.Add("Gather", {d.Add("Shape", {x}), d.Ints({dim})});
}

// Returns a shape made of parts, each [1] or longer.
ValueId Joined(RowDraft& d, const std::vector<ValueId>& parts) {
  return d.Add("Concat", parts, {{"axis", int64_t{0}}});
}

ValueId Transpose(RowDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 1, 4);
  std::vector<int64_t> order(d.RankOf(x));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[d.chance().Below(static_cast<int64_t>(i))]);
  return d.Add(op, {x}, {{"perm", order}});
}

// Two dims become one.
ValueId Merge(RowDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 2, 4);
  const int64_t first = d.chance().Below(d.RankOf(x) - 1);
  std::vector<ValueId> parts;
  for (int64_t dim = 0; dim < d.RankOf(x); ++dim) {
    if (dim == first + 1) continue;
    parts.push_back(dim == first ? d.Ints({-1}) : SizeOf(d, x, dim));
  }
  return d.Add(op, {x, Joined(d, parts)});
}

// One dim becomes two, or two other ones.
ValueId Divided(RowDraft& d, absl::string_view op) {
  Dims dims = d.AnyDims(1, 3);
  const auto at = static_cast<size_t>(d.chance().Below(static_cast<int64_t>(dims.size())));
  const int64_t factor = d.chance().Of({2, 3});
  if (dims[at].is_constant()) {
    dims[at].size = factor * d.chance().Of({1, 2});
  } else if (d.chance().OneIn(2)) {
    dims.insert(dims.begin() + static_cast<int64_t>(at) + d.chance().Below(2), SizeDim(factor));
  }
  const ValueId x = d.Data(d.AnyType(), dims);
  std::vector<ValueId> parts;
  for (int64_t dim = 0; dim < d.RankOf(x); ++dim) {
    if (dim != static_cast<int64_t>(at)) {
      parts.push_back(d.chance().OneIn(2) ? SizeOf(d, x, dim) : d.Ints({0}));
      continue;
    }
    std::vector<int64_t> two = {-1, factor};
    if (d.chance().OneIn(2)) std::swap(two[0], two[1]);
    parts.push_back(d.Ints(two));
  }
  if (d.chance().OneIn(4)) parts = {d.Ints({-1, factor})};
  const ValueId y = d.Add(op, {x, Joined(d, parts)});
  if (y == kNone || !d.chance().OneIn(3)) return y;
  // And back, the two turned, as heads are.
  std::vector<int64_t> order(d.RankOf(y));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[at], order[std::min(at + 1, order.size() - 1)]);
  const ValueId turned = d.Add("Transpose", {y}, {{"perm", order}});
  return turned == kNone ? y : d.Add(op, {turned, d.Add("Shape", {x})});
}

ValueId Flat(RowDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 0, 4);
  return d.Add(op, {x, d.Ints(d.chance().OneIn(2) ? std::vector<int64_t>{-1}
                                                  : std::vector<int64_t>{1, -1})});
}

ValueId Squeeze(RowDraft& d, absl::string_view op) {
  Dims dims = d.AnyDims(1, 4);
  if (op == "Unsqueeze") {
    const ValueId x = d.Data(d.AnyType(), dims);
    std::vector<int64_t> axes = {d.chance().Below(static_cast<int64_t>(dims.size()) + 1)};
    if (d.chance().OneIn(3)) axes.push_back(-1);
    return d.Add(op, {x, d.Ints(axes)});
  }
  const int64_t at = d.chance().Below(static_cast<int64_t>(dims.size()) + 1);
  dims.insert(dims.begin() + at, SizeDim(1));
  const ValueId x = d.Data(d.AnyType(), dims);
  return d.Add(op, {x, d.chance().OneIn(6) ? kNone : d.Ints({Signed(d, x, at)})});
}

ValueId Flatten(RowDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 1, 4);
  return d.Add(op, {x}, {{"axis", d.chance().Between(-1, d.RankOf(x))}});
}

ValueId Concat(RowDraft& d, absl::string_view op) {
  const Dims dims = d.AnyDims(1, 4);
  const DType dtype = d.AnyType();
  const int64_t axis = d.chance().Below(static_cast<int64_t>(dims.size()));
  std::vector<ValueId> parts = {d.Data(dtype, dims)};
  for (int64_t i = d.chance().Below(3); i > 0; --i) {
    Dims other = dims;
    if (!d.chance().OneIn(3)) other[axis] = SizeDim(d.chance().Between(1, 3));
    parts.push_back(d.DataOrFixed(dtype, other));
  }
  if (d.chance().OneIn(2)) std::swap(parts.front(), parts.back());
  return d.Add(op, parts, {{"axis", Signed(d, parts[0], axis)}});
}

ValueId Split(RowDraft& d, absl::string_view op) {
  Dims dims = d.AnyDims(1, 4);
  const auto axis = static_cast<size_t>(d.chance().Below(static_cast<int64_t>(dims.size())));
  if (dims[axis].is_constant()) dims[axis].size = d.chance().Between(2, 5);
  const ValueId x = d.Data(d.AnyType(), dims);
  Attributes attributes = {{"axis", Signed(d, x, static_cast<int64_t>(axis))}};
  if (dims[axis].is_constant() && d.chance().OneIn(2)) {
    const int64_t first = d.chance().Between(1, dims[axis].size - 1);
    return d.Add(op, {x, d.Ints({first, dims[axis].size - first})}, attributes, 2);
  }
  if (!dims[axis].is_constant() && d.chance().OneIn(2)) {
    const ValueId first = d.Ints({d.chance().Between(0, 2)});
    const ValueId rest = d.Add("Sub", {SizeOf(d, x, static_cast<int64_t>(axis)), first});
    if (rest == kNone) return kNone;
    const bool turned = d.chance().OneIn(2);
    return d.Add(op, {x, turned ? Joined(d, {rest, first}) : Joined(d, {first, rest})}, attributes,
                 2);
  }
  attributes.Set("num_outputs", int64_t{2});
  return d.Add(op, {x}, attributes, 2);
}

ValueId Slice(RowDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 1, 4);
  Chance& chance = d.chance();
  const int64_t dim = AnyDim(d, x);
  const auto place = [&](std::vector<int64_t> fixed) -> ValueId {
    if (!chance.OneIn(5)) return d.Ints({chance.Of(fixed)});
    const ValueId size = SizeOf(d, x, dim);  // counted from it
    return d.Add(std::string(chance.Of({"Sub", "Div"})), {size, d.Ints({chance.Between(1, 2)})});
  };
  const int64_t step = chance.OneIn(3) ? chance.Of({2, 3, -1, -2}) : 1;
  const ValueId start = step > 0 ? place({0, 0, 1, 2, -1, -2}) : place({-1, -2, 3, INT64_MAX});
  const ValueId end = step > 0 ? place({1, 3, -1, INT64_MAX}) : place({0, 1, INT64_MIN, -4});
  return d.Add(op, {x, start, end, d.Ints({Signed(d, x, dim)}), d.Ints({step})});
}

ValueId Expand(RowDraft& d, absl::string_view op) {
  const Dims wide = d.AnyDims(1, 4);
  const ValueId x = d.DataOrFixed(d.AnyType(), d.Beside(wide));
  if (d.chance().OneIn(2))
    return d.Add(op, {x, d.Add("Shape", {d.Input("x", DType::kFloat32, wide)})});
  std::vector<int64_t> shape(d.RankOf(x) + d.chance().Below(2), 1);
  if (!shape.empty()) shape[0] = d.chance().Between(1, 3);
  return d.Add(op, {x, d.Ints(shape)});
}

ValueId Tile(RowDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 1, 4);
  std::vector<int64_t> repeats(d.RankOf(x), 1);
  repeats[AnyDim(d, x)] = d.chance().Between(1, 3);
  if (d.chance().OneIn(4)) repeats[AnyDim(d, x)] = 2;
  return d.Add(op, {x, d.Ints(repeats)});
}

ValueId Pad(RowDraft& d, absl::string_view op) {
  const ValueId x = d.Data(d.NumberType(), d.AnyDims(1, 4));
  Chance& chance = d.chance();
  const std::string mode = chance.Of({"constant", "constant", "edge", "reflect", "wrap"});
  const int64_t least = mode == "constant" ? -1 : 0;
  const ValueId pads = d.Ints({chance.Between(least, 2), chance.Between(least, 2)});
  const bool constant = mode == "constant" && chance.OneIn(2);
  return d.Add(op,
               {x, pads, constant ? d.Fixed(d.TypeOf(x), {}, 1, 1) : kNone,
                d.Ints({Signed(d, x, AnyDim(d, x))})},
               {{"mode", mode}});
}

ValueId Trilu(RowDraft& d, absl::string_view op) {
  const ValueId x = Something(d, 2, 4);
  return d.Add(op, {x, d.chance().OneIn(3) ? kNone : d.Int(d.chance().Between(-2, 2))},
               {{"upper", d.chance().Below(2)}});
}

ValueId Planes(RowDraft& d, absl::string_view op) {
  const bool to_space = op == "DepthToSpace";
  const Dims dims = d.DrawDims(
      {kAny, to_space ? 4 * d.chance().Between(1, 2) : d.chance().Between(1, 3), kAny, kAny});
  ValueId x = d.Data(d.FloatType(), dims);
  Attributes attributes = {{"blocksize", int64_t{2}}};
  if (to_space) attributes.Set("mode", std::string(d.chance().Of({"DCR", "CRD"})));
  if (!to_space) {  // sizes that two divides
    x = d.Add("Concat", {x, x}, {{"axis", int64_t{2}}});
    x = d.Add("Concat", {x, x}, {{"axis", int64_t{3}}});
  }
  return d.Add(op, {x}, attributes);
}

ValueId ReverseSequence(RowDraft& d, absl::string_view op) {
  Dims dims = d.DrawDims({kAny, kAny});
  const int64_t time = d.chance().Below(2);
  for (int64_t i = d.chance().Below(2); i > 0; --i) dims.push_back(SizeDim(2));
  if (time == 0) std::swap(dims[0], dims[1]);
  const ValueId x = d.Data(d.AnyType(), dims);
  ValueId lengths = d.Bounded("some", dims[time], DType::kInt64, {dims[1 - time]});
  if (d.chance().OneIn(2)) lengths = d.Add("Expand", {SizeOf(d, x, time), SizeOf(d, x, 1 - time)});
  return d.Add(op, {x, lengths}, {{"time_axis", time}, {"batch_axis", 1 - time}});
}

ValueId Gather(RowDraft& d, absl::string_view op) {
  const Dims dims = d.AnyDims(1, 3);
  const DType dtype = d.AnyType();
  const ValueId x = d.DataOrFixed(dtype, dims);
  const auto axis = static_cast<size_t>(d.chance().Below(static_cast<int64_t>(dims.size())));
  const DType of_index = d.chance().Of({DType::kInt32, DType::kInt64});
  const bool back = d.chance().OneIn(3);
  ValueId index = kNone;
  if (d.chance().OneIn(3)) {
    const auto size = d.SmallestSize(x, static_cast<int64_t>(axis));
    index = d.chance().OneIn(2) ? d.Int(d.chance().Of({int64_t{0}, int64_t{-1}, size - 1}))
                                : d.Ints({d.chance().Below(size), 0, -1});
  } else {
    Dims of = d.AnyDims(0, 2);
    if (d.chance().OneIn(2) && !dims[0].is_constant() && !of.empty()) of[0] = dims[0];
    index = d.Bounded(back ? "place" : "index", dims[axis], of_index, of);
  }
  return d.Add(op, {x, index}, {{"axis", Signed(d, x, static_cast<int64_t>(axis))}});
}

// Rows of a table, by ids.
ValueId Embed(RowDraft& d, absl::string_view op) {
  const ValueId ids = d.Bounded(d.chance().OneIn(3) ? "place" : "index", SizeDim(6), DType::kInt64,
                                d.AnyDims(0, 3));
  return d.Add(op, {d.Fixed(d.FloatType(), {6, 3}), ids});
}

ValueId GatherElements(RowDraft& d, absl::string_view op) {
  const Dims dims = d.AnyDims(1, 3);
  const auto axis = static_cast<size_t>(d.chance().Below(static_cast<int64_t>(dims.size())));
  const DType dtype = d.FloatType();
  const ValueId x = d.Data(dtype, dims);
  Dims of = dims;
  if (d.chance().OneIn(2)) of[axis] = SizeDim(d.chance().Between(1, 3));
  const ValueId index =
      d.Bounded(d.chance().OneIn(3) ? "place" : "index", dims[axis], DType::kInt64, of);
  const Attributes attributes = {{"axis", Signed(d, x, static_cast<int64_t>(axis))}};
  if (op == "GatherElements") return d.Add(op, {x, index}, attributes);
  Attributes scatter = attributes;
  // Which of two elements for one place stays is not defined.
  scatter.Set("reduction", std::string(d.chance().Of({"add", "max", "min", "mul"})));
  return d.Add(op, {x, index, d.Data(dtype, of)}, scatter);
}

ValueId GatherNd(RowDraft& d, absl::string_view op) {
  const Dims dims = d.AnyDims(2, 4);
  const DType dtype = d.FloatType();
  const ValueId x = d.Data(dtype, dims);
  Chance& chance = d.chance();
  const int64_t depth = chance.Between(1, 2);
  int64_t batch = op == "GatherND" && chance.OneIn(2) ? 1 : 0;
  Dims of = batch == 1 ? Dims{dims[0]} : Dims{};
  if (chance.OneIn(2)) of.push_back(chance.OneIn(2) ? SizeDim(2) : Dim{.symbol = kAxis});
  // Columns of the index, each within its own dim.
  std::vector<ValueId> columns;
  for (int64_t i = 0; i < depth && batch + i < static_cast<int64_t>(dims.size()); ++i) {
    Dims column = of;
    column.push_back(SizeDim(1));
    columns.push_back(
        d.Bounded(chance.OneIn(4) ? "place" : "index", dims[batch + i], DType::kInt64, column));
  }
  const ValueId index =
      columns.size() == 1 ? columns[0] : d.Add("Concat", columns, {{"axis", int64_t{-1}}});
  if (index == kNone) return kNone;
  if (op == "GatherND") return d.Add(op, {x, index}, {{"batch_dims", batch}});
  const ValueId taken = d.Add("GatherND", {x, index});
  return taken == kNone
             ? kNone
             : d.Add(op, {x, index, d.Add("Neg", {taken})},
                     {{"reduction", std::string(chance.Of({"add", "max", "min", "mul"}))}});
}

ValueId OneHot(RowDraft& d, absl::string_view op) {
  const Dims dims = d.AnyDims(0, 3);
  const int64_t depth = d.chance().Between(2, 5);
  const ValueId ids =
      d.Bounded(d.chance().OneIn(3) ? "place" : "index", SizeDim(depth), DType::kInt64, dims);
  return d.Add(
      op, {ids, d.Int(depth), d.Fixed(d.FloatType(), {2}, 0, 1)},
      {{"axis",
        d.chance().Of({int64_t{-1}, d.chance().Below(static_cast<int64_t>(dims.size()) + 1)})}});
}

constexpr RowCase kMovementCases[] = {
    {"Transpose", Transpose},
    {"Reshape", Merge},
    {"Reshape", Divided},
    {"Reshape", Flat},
    {"Squeeze", Squeeze},
    {"Unsqueeze", Squeeze},
    {"Flatten", Flatten},
    {"Concat", Concat},
    {"Split", Split},
    {"Slice", Slice},
    {"Expand", Expand},
    {"Tile", Tile},
    {"Pad", Pad},
    {"Trilu", Trilu},
    {"DepthToSpace", Planes},
    {"SpaceToDepth", Planes},
    {"ReverseSequence", ReverseSequence},
    {"Gather", Gather},
    {"Gather", Embed},
    {"GatherElements", GatherElements},
    {"ScatterElements", GatherElements},
    {"GatherND", GatherNd},
    {"ScatterND", GatherNd},
    {"OneHot", OneHot},
};

}  // namespace

absl::Span<const RowCase> MovementCases() { return kMovementCases; }

}  // namespace reprise::obligations

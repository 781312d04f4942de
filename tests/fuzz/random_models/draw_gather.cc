// Ops that take and put elements by index.
#include "tests/fuzz/random_models/op_templates.h"
#include "tests/fuzz/random_models/size_numbers.h"

namespace reprise::fuzz {
namespace {

// Integers that lie in [0, size) whatever a request holds.
ValueId Indices(ModelDraft& d, int64_t size, int64_t low_rank, int64_t high_rank) {
  const ValueId x = d.Pick([&](ValueId id) {
    return d.TypeOf(id) == DType::kInt64 && d.RankOf(id) >= low_rank && d.RankOf(id) <= high_rank;
  });
  if (x == kNone || size < 1) return kNone;
  return d.Add("Mod", {x, d.Int(size)});
}

// `indices` brought into dim `dim` of `x`, whatever its size: now and then only into the smallest
// one, so that some requests are refused, and now and then counted from the end.
ValueId IntoDim(ModelDraft& d, ValueId indices, ValueId x, int64_t dim) {
  const int64_t least = d.SmallestSize(x, dim);
  if (least < 1 || indices == kNone) return kNone;
  if (d.chance().OneIn(4)) return d.Add("Mod", {indices, d.Int(least)});
  const ValueId size = SizeOf(d, x, dim);
  const ValueId inside = d.Add("Mod", {indices, size});
  return d.chance().OneIn(3) ? d.Add("Sub", {inside, size}) : inside;
}

bool Gather(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  if (chance.OneIn(2)) {  // an embedding
    const int64_t width = chance.Of({4, 8});
    const ValueId ids = Indices(d, 16, 0, 3);
    return ids != kNone && d.Add(op, {d.Weight({16, width}), ids}) != kNone;
  }
  const ValueId x = d.PickFloat(1, 4);
  if (x == kNone) return false;
  const int64_t axis = chance.Below(d.RankOf(x));
  const int64_t least = d.SmallestSize(x, axis);
  if (least < 1) return false;
  const int64_t place = chance.Of({int64_t{0}, int64_t{-1}, chance.Below(least), -least});
  const ValueId index = chance.OneIn(3)   ? IntoDim(d, Indices(d, 1000, 0, 2), x, axis)
                        : chance.OneIn(2) ? d.Int(place)
                                          : d.Ints({place, 0});
  return index != kNone && d.Add(op, {x, index}, {{"axis", axis}}) != kNone;
}

// Indices of the shape of `like` into dim `dim` of `x`.
ValueId IndicesLike(ModelDraft& d, ValueId like, ValueId x, int64_t dim) {
  const ValueId whole =
      d.Add("Cast", {d.Add("Abs", {d.Add("Mul", {like, d.Float(4)})})}, {{"to", int64_t{7}}});
  return IntoDim(d, whole, x, dim);
}

bool GatherElements(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1, 4);
  if (x == kNone) return false;
  const int64_t axis = d.chance().Below(d.RankOf(x));
  const ValueId indices = IndicesLike(d, x, x, axis);
  if (indices == kNone) return false;
  if (op == "GatherElements") return d.Add(op, {x, indices}, {{"axis", axis}}) != kNone;
  const std::string reduction = d.chance().Of({"add", "max", "min", "none"});
  // Which of two elements for one place stays is not defined: then each has its own.
  const ValueId places = reduction != "none" ? indices : d.Add("Mul", {indices, d.Int(0)});
  const ValueId updates = reduction != "none" ? d.Add("Neg", {x}) : d.Add("Mul", {x, d.Float(0)});
  return places != kNone && updates != kNone &&
         d.Add(op, {x, places, updates}, {{"axis", axis}, {"reduction", reduction}}) != kNone;
}

bool GatherND(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(2, 4);
  if (x == kNone) return false;
  Chance& chance = d.chance();
  const int64_t n = chance.Between(1, 2);
  const int64_t deep = chance.Between(1, 2);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < n * deep; ++i) {
    const int64_t least = d.SmallestSize(x, i % deep);
    if (least < 1) return false;
    values.push_back(chance.OneIn(4) ? -1 : chance.Below(std::min<int64_t>(least, 3)));
  }
  // Two updates of one place have no order.
  if (n == 2 && op == "ScatterND" && values[0] == values[deep])
    values[0] = values[deep] == 0 ? -1 : 0;
  const ValueId indices = d.Constant(Tensor::FromVector(DType::kInt64, {n, deep}, values));
  if (op == "GatherND") return d.Add(op, {x, indices}) != kNone;
  const ValueId taken = d.Add("GatherND", {x, indices});
  const ValueId updates = d.Add("Tanh", {taken});
  return updates != kNone &&
         d.Add(op, {x, indices, updates},
               {{"reduction", std::string(chance.Of({"none", "add", "max"}))}}) != kNone;
}

bool OneHot(ModelDraft& d, absl::string_view op) {
  const ValueId ids = Indices(d, 8, 0, 3);
  return ids != kNone &&
         d.Add(op,
               {ids, d.Int(d.chance().Of({6, 8})),
                d.Constant(Tensor::FromVector<float>(DType::kFloat32, {2}, {0, 1}))},
               {{"axis", d.chance().Of({int64_t{-1}, int64_t{0}})}}) != kNone;
}

constexpr OpTemplate kGatherTemplates[] = {
    {"Gather", Gather},
    {"Gather", Gather},
    {"Gather", Gather},
    {"GatherElements", GatherElements},
    {"ScatterElements", GatherElements},
    {"GatherND", GatherND},
    {"ScatterND", GatherND},
    {"OneHot", OneHot},
};

}  // namespace

absl::Span<const OpTemplate> GatherTemplates() { return kGatherTemplates; }

}  // namespace reprise::fuzz

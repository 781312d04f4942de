// Ops whose results have as many elements as data says, and random numbers, which no two runs have
// in common without a seed.
#include "tests/fuzz/random_models/op_templates.h"

namespace reprise::fuzz {
namespace {

bool NonZero(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickBool();
  return x != kNone && d.Add(op, {x}) != kNone;
}

bool Compress(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(1, 3);
  if (x == kNone) return false;
  const ValueId flat = d.Add("Reshape", {d.Add("Greater", {x, d.Float(0)}), d.Ints({-1})});
  return flat != kNone && d.Add(op, {x, flat}) != kNone;
}

bool Unique(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.chance().OneIn(2) ? d.PickInteger() : d.PickFloat(1, 3);
  return x != kNone && d.Add(op, {x}) != kNone;
}

bool NonMaxSuppression(ModelDraft& d, absl::string_view op) {
  // Any [batch, boxes, width] makes boxes and scores.
  const ValueId x = d.Pick([&](ValueId id) {
    return d.TypeOf(id) == DType::kFloat32 && d.RankOf(id) == 3 && d.FixedSize(id, 2) >= 4;
  });
  if (x == kNone) return false;
  const ValueId boxes = d.Add("Slice", {x, d.Ints({0}), d.Ints({4}), d.Ints({2})});
  const ValueId score = d.Add("Slice", {x, d.Ints({0}), d.Ints({1}), d.Ints({2})});
  const ValueId scores = d.Add("Transpose", {score}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  return boxes != kNone && scores != kNone &&
         d.Add(op, {boxes, scores, d.Int(3), d.Float(0.5), d.Float(0)}) != kNone;
}

bool Random(ModelDraft& d, absl::string_view op) {
  const Attributes seeded = {{"seed", static_cast<float>(d.chance().Between(1, 9))}};
  if (op == "RandomNormal" || op == "RandomUniform") {
    Attributes attributes = seeded;
    attributes.Set("shape", std::vector<int64_t>{4});
    const ValueId noise = d.Add(op, {}, attributes);
    const ValueId x = d.PickFloat(1);
    return noise != kNone && x != kNone && d.Add("Add", {x, noise}) != kNone;
  }
  ValueId x = d.PickFloat(1);
  if (x == kNone) return false;
  if (op == "Bernoulli") x = d.Add("Sigmoid", {x});
  return d.Add(op, {x}, seeded) != kNone;
}

// Turns that a number of the model decides.
bool Loop(ModelDraft& d, absl::string_view) {
  const ValueId x = d.PickFloat(0, 3);
  if (x == kNone) return false;
  return d.AddLoop(d.Int(d.chance().Between(0, 3)), x, [&](ValueId carried, ValueId) {
    return d.Add("Tanh", {d.Add("Add", {carried, d.Float(0.5)})});
  }) != kNone;
}

constexpr OpTemplate kDataTemplates[] = {
    {"NonZero", NonZero},         {"Compress", Compress},
    {"Unique", Unique},           {"NonMaxSuppression", NonMaxSuppression},
    {"RandomNormal", Random},     {"RandomUniform", Random},
    {"RandomNormalLike", Random}, {"RandomUniformLike", Random},
    {"Bernoulli", Random},        {"Loop", Loop},
};

}  // namespace

absl::Span<const OpTemplate> DataTemplates() { return kDataTemplates; }

}  // namespace reprise::fuzz

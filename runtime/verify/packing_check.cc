#include "runtime/verify/packing_check.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/numbers.h"

namespace reprise {
namespace {

using Patterns = std::vector<MaskPattern>;

// A request of a replay. All but the longest of the first mix have shapes that the certificates
// were measured at, so that the recipes that answer them alone are there: that mix is paid at every
// load without a store.
struct Sent {
  int64_t rows = 0;
  int64_t length = 0;
  Drawer::Content content;
  // Its answer is nobody's; it is there for what it might do to others.
  std::optional<Hostile> hostile;
};

// Requests that lie in one replay, fewer tokens than there is room for, masks of every kind beside
// each other.
struct Mix {
  std::vector<Sent> sent;
  std::optional<Hostile> behind;  // lies in the tokens behind the last segment, else zeros
};

Sent Hostiles(int64_t rows, int64_t length, Hostile hostile) {
  return {.rows = rows, .length = length, .hostile = hostile};
}

Mix FirstMix() {
  return {.sent = {{2,
                    PackingCheck::kWithHoles,
                    {.patterns = {MaskPattern::kHoles, MaskPattern::kLeftPadded},
                     .float_masks = true,
                     .fill_ids = true,
                     .seed = 101}},
                   {2, 1, {.patterns = {MaskPattern::kOnes}, .seed = 102}},
                   {1, 31, {.patterns = {MaskPattern::kRagged}, .seed = 103}}}};
}

// Masks of every kind, in rows of another length than those of the first mix, whole and alone.
Mix AnyMaskMix() {
  using enum MaskPattern;
  return {.sent = {{3, 7, {.patterns = Patterns{kNone, kLeftPadded, kOnes}, .seed = 201}},
                   {3,
                    13,
                    {.patterns = Patterns{kLeftPadded, kHoles, kNone},
                     .float_masks = true,
                     .fill_ids = true,
                     .seed = 202}},
                   {1, 1, {.patterns = Patterns{kNone}, .seed = 203}},
                   {2, 13, {.patterns = Patterns{kFirst, kRagged}, .seed = 204}}}};
}

// Mixes of which only ranges show a fault: requests of one value beside loud and quiet ones,
// several rows of which one is louder, and tokens that belong to nobody.
std::vector<Mix> MoreMixes(uint64_t seed) {
  using enum MaskPattern;
  std::vector<Mix> mixes = {
      {.sent = {{3, 7, {.patterns = Patterns{kAlternating, kOnes, kRagged}}},
                Hostiles(1, 5, Hostile::kHigh),
                {1, 17, {.patterns = Patterns{kHoles}, .float_masks = true}},
                {2, 5, {.patterns = Patterns{kLeftPadded}, .one_id = true}}},
       .behind = Hostile::kLow},
      {.sent = {{1, 1, {}},
                Hostiles(2, 5, Hostile::kLow),
                {1, 31, {.counted_ids = true, .float_shift = 40}},
                {2, 13, {.patterns = Patterns{kRagged, kHoles}, .fill_ids = true}}},
       .behind = Hostile::kHigh},
      {.sent = {Hostiles(1, 17, Hostile::kSmall),
                {2, 13, {.patterns = Patterns{kFirst, kOnes}, .float_shift = -300}},
                {3, 7, {.patterns = Patterns{kOnes}}},
                {2, 1, {.one_id = true}},
                {1, 5, {.patterns = Patterns{kRagged}, .counted_ids = true}}},
       .behind = Hostile::kRandom},
      {.sent = {{1, 31, {.patterns = Patterns{kHoles}, .one_id = true}},
                {1, 17, {.float_shift = 1000}},
                Hostiles(1, 31, Hostile::kOne),
                {1, 5, {.patterns = Patterns{kLeftPadded}, .float_masks = true}}},
       .behind = Hostile::kHigh}};
  for (Mix& mix : mixes) {
    for (Sent& sent : mix.sent) sent.content.seed = ++seed;
  }
  return mixes;
}

// One request: what is sent, and the answer that it gets alone (none: nobody asks).
struct Case {
  int64_t rows = 0;
  int64_t length = 0;
  std::vector<Tensor> inputs;
  std::vector<Tensor> expected;

  ProofRunner::Part part() const { return {.inputs = &inputs, .rows = rows, .length = length}; }
};

absl::StatusOr<Case> MakeCase(const Sent& sent, const PackingCheck::Lane& lane) {
  Case one = {.rows = lane.batch.empty() ? 1 : sent.rows, .length = sent.length};
  SymbolSizes sizes = lane.drawer->base_sizes();
  sizes[lane.sequence] = sent.length;
  if (!lane.batch.empty()) sizes[lane.batch] = sent.rows;
  for (size_t i = 0; i < lane.drawer->size(); ++i) {
    ASSIGN_OR_RETURN(const Shape shape, lane.drawer->ShapeAt(i, sizes));
    one.inputs.push_back(
        ToTensor(sent.hostile.has_value()
                     ? lane.drawer->DrawHostile(i, shape, *sent.hostile, sent.content.seed)
                     : lane.drawer->Draw(i, shape, sent.content)));
  }
  if (sent.hostile.has_value()) return one;
  ASSIGN_OR_RETURN(one.expected, lane.runner->Run(one.inputs));
  return one;
}

struct MixCases {
  std::vector<Case> cases;
  std::optional<Case> behind;
};

absl::StatusOr<MixCases> MakeCases(const Mix& mix, int64_t longest,
                                   const PackingCheck::Lane& lane) {
  constexpr int64_t kBehind = 9;
  MixCases made;
  for (const Sent& sent : mix.sent) {
    if (sent.length > longest) continue;
    ASSIGN_OR_RETURN(made.cases.emplace_back(), MakeCase(sent, lane));
  }
  if (mix.behind.has_value()) {
    ASSIGN_OR_RETURN(made.behind, MakeCase(Hostiles(1, kBehind, *mix.behind), lane));
  }
  return made;
}

absl::Status Compare(const PackingCheck::Lane& lane, const std::vector<Case>& cases,
                     const std::vector<std::vector<Tensor>>& answers) {
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].expected.empty()) continue;
    for (size_t position = 0; position < lane.output_names.size(); ++position) {
      const Tensor& actual = answers[i][position];
      const Tensor& expected = cases[i].expected[position];
      const std::string where =
          absl::StrCat("output '", lane.output_names[position], "' at length ", cases[i].length);
      if (actual.shape() != expected.shape() || actual.dtype() != expected.dtype()) {
        return absl::FailedPreconditionError(absl::StrCat(where, " has shape ",
                                                          ShapeToString(actual.shape()), ", not ",
                                                          ShapeToString(expected.shape())));
      }
      const Shape origin(actual.shape().size(), 0);
      auto difference = Differ(expected, actual, origin, lane.tolerance);
      if (difference.has_value() && MayBeRounding(expected, actual, origin)) {
        std::vector<double> sizes;
        for (const Case& one : cases) {
          if (!one.expected.empty()) sizes.push_back(LargestOf(one.expected[position]));
        }
        difference = Differ(expected, actual, origin, lane.tolerance, UsualSize(std::move(sizes)));
      }
      if (difference.has_value()) {
        return absl::FailedPreconditionError(
            absl::StrCat(where, " changes when requests lie beside it: ", *difference));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PackingCheck::Run(const Lane& lane, const Rounds& rounds) {
  // The runs alone use the same memory: they come first.
  std::vector<Mix> mixes = {FirstMix()};
  if (rounds.any_mask) mixes.push_back(AnyMaskMix());
  for (int sweep = 0; sweep < rounds.sweeps; ++sweep) {
    constexpr uint64_t kSeeds = 1000;
    for (Mix& mix : MoreMixes((sweep + 1) * kSeeds)) mixes.push_back(std::move(mix));
  }
  std::vector<MixCases> made;
  for (const Mix& mix : mixes) {
    ASSIGN_OR_RETURN(made.emplace_back(), MakeCases(mix, form_.longest, lane));
    for (const Case& one : made.back().cases) answers_ += !one.expected.empty();
  }
  for (const auto& [cases, behind] : made) {
    std::vector<ProofRunner::Part> parts;
    for (const Case& one : cases) parts.push_back(one.part());
    std::optional<ProofRunner::Part> last;
    if (behind.has_value()) last = behind->part();
    ASSIGN_OR_RETURN(const auto answers,
                     lane.runner->RunPacked(parts, last.has_value() ? &*last : nullptr));
    RETURN_IF_ERROR(Compare(lane, cases, answers));
  }
  return absl::OkStatus();
}

}  // namespace reprise

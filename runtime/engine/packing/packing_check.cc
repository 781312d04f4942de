#include "runtime/engine/packing/packing_check.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/packing/packed_frame.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/recipe/compiler.h"

namespace reprise {
namespace {

constexpr PackedSizes kRoom = {.tokens = 128, .segments = 16};

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
  Request request;
  std::vector<Tensor> expected;

  PackedPart part() const { return {.request = &request, .rows = rows, .length = length}; }
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
    one.request.inputs.push_back({shape, one.inputs.back().data()});
  }
  if (sent.hostile.has_value()) return one;
  ASSIGN_OR_RETURN(one.expected, (*lane.exact)(one.inputs));
  return one;
}

struct MixCases {
  std::vector<Case> cases;
  std::optional<Case> behind;
};

absl::StatusOr<MixCases> MakeCases(const Mix& mix, const Packing& packing,
                                   const PackingCheck::Lane& lane) {
  constexpr int64_t kBehind = 9;
  MixCases made;
  for (const Sent& sent : mix.sent) {
    if (sent.length > packing.longest()) continue;
    ASSIGN_OR_RETURN(made.cases.emplace_back(), MakeCase(sent, lane));
  }
  if (mix.behind.has_value()) {
    ASSIGN_OR_RETURN(made.behind, MakeCase(Hostiles(1, kBehind, *mix.behind), lane));
  }
  return made;
}

absl::Status Compare(const Recipe& recipe, const PackingCheck::Lane& lane,
                     const std::vector<Case>& cases, absl::Span<const PackedPart> parts,
                     const std::byte* const* outputs) {
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].expected.empty()) continue;
    for (size_t position = 0; position < lane.output_names.size(); ++position) {
      const OutputTensor got = ReadPacked(recipe, position, parts, i, outputs[position]);
      const Tensor& expected = cases[i].expected[position];
      const std::string where =
          absl::StrCat("output '", lane.output_names[position], "' at length ", cases[i].length);
      if (got.shape != expected.shape() || recipe.outputs[position].dtype != expected.dtype()) {
        return absl::FailedPreconditionError(absl::StrCat(where, " has shape ",
                                                          ShapeToString(got.shape), ", not ",
                                                          ShapeToString(expected.shape())));
      }
      const Tensor actual = Tensor::Make(expected.dtype(), got.shape, [&](void* data) {
        std::memcpy(data, got.bytes.data(), got.bytes.size());
      });
      const Shape origin(got.shape.size(), 0);
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

PackingCheck::~PackingCheck() {
  if (recipe_ != nullptr) options_.parameters->Forget(*recipe_);
}

absl::Status PackingCheck::Run(const Lane& lane, const Rounds& rounds) {
  // The runs alone use the same stream: they come first.
  std::vector<Mix> mixes = {FirstMix()};
  if (rounds.any_mask) mixes.push_back(AnyMaskMix());
  for (int sweep = 0; sweep < rounds.sweeps; ++sweep) {
    constexpr uint64_t kSeeds = 1000;
    for (Mix& mix : MoreMixes((sweep + 1) * kSeeds)) mixes.push_back(std::move(mix));
  }
  std::vector<MixCases> made;
  for (const Mix& mix : mixes) {
    ASSIGN_OR_RETURN(made.emplace_back(), MakeCases(mix, packing_, lane));
    for (const Case& one : made.back().cases) answers_ += !one.expected.empty();
  }
  const RecipeKey key = packing_.KeyAt(kRoom, options_.device->fingerprint());
  ASSIGN_OR_RETURN(recipe_, Compile(packing_.graph(), key,
                                    {.device = options_.device,
                                     .clock = options_.clock,
                                     .batch_symbol = kTokensAxis,
                                     .segments_symbol = kSegmentsAxis}));
  ASSIGN_OR_RETURN(const auto parameters, options_.parameters->TableFor(recipe_));
  RETURN_IF_ERROR(lane.stream->Reserve(*recipe_));
  std::vector<int> positions(lane.drawer->size());
  std::iota(positions.begin(), positions.end(), 0);
  for (const auto& [cases, behind] : made) {
    std::vector<PackedPart> parts;
    FirstDataError error(*recipe_);
    Frame frame = lane.stream->MakeFrame(*recipe_, parameters->addresses(), &error);
    for (const Case& one : cases) {
      parts.push_back(one.part());
      frame.live_rows += one.rows * one.length;
      frame.live_segments += one.rows;
    }
    std::byte* const inputs = lane.stream->inputs();
    if (behind.has_value()) {
      std::vector<PackedPart> more = parts;
      more.push_back(behind->part());
      frame.live_rows += behind->length;
      GatherPacked(*recipe_, positions, more, std::nullopt, inputs);
      WriteBounds(*recipe_, parts, inputs);
    } else {
      GatherPacked(*recipe_, positions, parts, std::nullopt, inputs);
    }
    lane.stream->Replay(*recipe_, frame);
    if (error.get() != nullptr) return absl::FailedPreconditionError(RangeText(*error.get()));
    RETURN_IF_ERROR(Compare(*recipe_, lane, cases, parts, frame.outputs));
  }
  return absl::OkStatus();
}

}  // namespace reprise

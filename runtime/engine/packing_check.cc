#include "runtime/engine/packing_check.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/data_error.h"
#include "runtime/engine/packed_frame.h"
#include "runtime/recipe/compiler.h"

namespace reprise {
namespace {

constexpr PackedSizes kRoom = {.tokens = 128, .segments = 16};

// Requests that lie in one replay, fewer tokens than there is room for, masks of every kind beside
// each other. All but the longest have shapes that the certificates were measured at, so that the
// recipes that answer them alone are there: this is paid at every load without a store.
struct Sent {
  int64_t rows = 0;
  int64_t length = 0;
  Drawer::Content content;
};
const Sent kSent[] = {
    {2,
     5,
     {.patterns = {MaskPattern::kHoles, MaskPattern::kLeftPadded},
      .float_masks = true,
      .fill_ids = true,
      .seed = 101}},
    {2, 1, {.patterns = {MaskPattern::kOnes}, .seed = 102}},
    {1, 31, {.patterns = {MaskPattern::kRagged}, .seed = 103}},
};

// One request: what is sent, and the answer that it gets alone.
struct Case {
  int64_t length = 0;
  std::vector<Tensor> inputs;
  Request request;
  std::vector<Tensor> expected;
};

absl::StatusOr<std::vector<Case>> MakeCases(const Packing& packing,
                                            const PackingCheck::Lane& lane) {
  std::vector<Case> cases;
  for (const auto& [rows, length, content] : kSent) {
    if (length > packing.longest()) continue;
    Case& one = cases.emplace_back();
    one.length = length;
    SymbolSizes sizes = lane.drawer->base_sizes();
    sizes[lane.sequence] = length;
    if (!lane.batch.empty()) sizes[lane.batch] = rows;
    for (size_t i = 0; i < lane.drawer->size(); ++i) {
      ASSIGN_OR_RETURN(const Shape shape, lane.drawer->ShapeAt(i, sizes));
      one.inputs.push_back(ToTensor(lane.drawer->Draw(i, shape, content)));
      one.request.inputs.push_back({shape, one.inputs.back().data()});
    }
    ASSIGN_OR_RETURN(one.expected, (*lane.exact)(one.inputs));
  }
  return cases;
}

absl::Status Compare(const Recipe& recipe, const PackingCheck::Lane& lane,
                     const std::vector<Case>& cases, absl::Span<const PackedPart> parts,
                     const std::byte* outputs) {
  for (size_t i = 0; i < cases.size(); ++i) {
    for (size_t position = 0; position < lane.output_names.size(); ++position) {
      const OutputTensor got = ReadPacked(recipe, position, parts, i, outputs);
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
        for (const Case& one : cases) sizes.push_back(LargestOf(one.expected[position]));
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

absl::Status PackingCheck::Run(const Lane& lane) {
  // The runs alone use the same stream: they come first.
  ASSIGN_OR_RETURN(const std::vector<Case> cases, MakeCases(packing_, lane));
  const RecipeKey key = packing_.KeyAt(kRoom, options_.device->fingerprint());
  ASSIGN_OR_RETURN(
      recipe_,
      Compile(packing_.graph(), key,
              {.device = options_.device, .clock = options_.clock, .batch_symbol = kTokensAxis}));
  ASSIGN_OR_RETURN(const auto parameters, options_.parameters->TableFor(recipe_));
  RETURN_IF_ERROR(lane.stream->Reserve(*recipe_));
  std::vector<int> positions(lane.drawer->size());
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<PackedPart> parts;
  FirstDataError error(*recipe_);
  Frame frame = lane.stream->MakeFrame(*recipe_, parameters->addresses(), &error);
  for (const Case& one : cases) {
    const int64_t rows = one.inputs[0].shape()[0];
    parts.push_back({.request = &one.request, .rows = rows, .length = one.length});
    frame.live_rows += rows * one.length;
  }
  GatherPacked(*recipe_, positions, parts, std::nullopt, const_cast<std::byte*>(frame.inputs));
  lane.stream->Replay(*recipe_, frame);
  if (error.get() != nullptr) return absl::FailedPreconditionError(RangeText(*error.get()));
  return Compare(*recipe_, lane, cases, parts, frame.outputs);
}

}  // namespace reprise

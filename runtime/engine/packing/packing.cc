#include "runtime/engine/packing/packing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/pack/request_scales.h"

namespace reprise {
namespace {

constexpr int64_t kSmallestBucket = 16;

std::vector<int64_t> BucketsUpTo(int64_t largest) {
  std::vector<int64_t> buckets;
  for (int64_t tokens = kSmallestBucket; tokens < largest; tokens *= 2) buckets.push_back(tokens);
  buckets.push_back(largest);
  return buckets;
}

}  // namespace

absl::StatusOr<Packing> Packing::Make(const Graph& symbolic, const PackOptions& options,
                                      int sequence_axis, const PackingLimits& limits) {
  Packing packing;
  Graph by_request = symbolic;
  packing.has_request_scales_ = !ScaleByRequest(by_request).empty();
  ASSIGN_OR_RETURN(packing.graph_, PackTokens(by_request, options));
  packing.fingerprint_ = FingerprintGraph(*packing.graph_);
  packing.sequence_axis_ = sequence_axis;
  packing.longest_ = options.longest;
  packing.max_segments_ = limits.max_segments;
  packing.buckets_ =
      BucketsUpTo(std::max({limits.max_tokens, options.longest, 2 * limits.max_segments}));
  return packing;
}

int64_t Packing::SegmentsOf(int64_t tokens) const { return std::min(tokens / 2, max_segments_); }

std::optional<PackedSizes> Packing::Fit(const PackedSizes& sizes) const {
  for (const int64_t tokens : buckets_) {
    if (tokens >= sizes.tokens && SegmentsOf(tokens) >= sizes.segments) {
      return PackedSizes{tokens, SegmentsOf(tokens)};
    }
  }
  return std::nullopt;
}

RecipeKey Packing::KeyAt(const PackedSizes& sizes, const std::string& device,
                         KeyPolicy policy) const {
  Binding binding = {.axes = {{kTokensAxis, sizes.tokens}, {kSegmentsAxis, sizes.segments}}};
  policy.packing = kPacked;
  return MakeKey(fingerprint_, std::move(binding), device, policy);
}

PackedSizes PackedSizesOf(const RecipeKey& key) {
  return {key.binding.axes.at(kTokensAxis), key.binding.axes.at(kSegmentsAxis)};
}

const std::set<std::string>& PackedAxes() {
  static const auto* const axes = new std::set<std::string>{kTokensAxis, kSegmentsAxis};
  return *axes;
}

std::string PackedLabel(int64_t tokens) { return absl::StrCat("t", tokens); }

}  // namespace reprise

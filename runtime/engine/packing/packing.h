// Packing: how the requests of a model lie one after another in a replay, without padding.
//
// The model's graph becomes one over tokens and segments (passes/pack/pack_tokens.h). A recipe of
// it is compiled for a number of tokens; the segments that it has room for follow from that. A
// replay computes the tokens that requests brought and no others, so a larger recipe costs
// addresses, not time. Requests with rows longer than `longest` run on the model's own graph.
//
// A model that may not be padded may be packed: where a node looks at a whole request (the range
// that DynamicQuantizeLinear takes its scale from), it then looks at each request alone
// (passes/pack/request_scales.h). Such a request is not split by rows.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/held_graph.h"
#include "runtime/passes/pack/pack_tokens.h"
#include "runtime/recipe/key.h"

namespace reprise {

// RecipeKey::packing of a packed recipe.
inline constexpr char kPacked[] = "packed";

// The sizes that a packed replay holds, or has room for.
struct PackedSizes {
  int64_t tokens = 0;
  int64_t segments = 0;
};

struct PackingLimits {
  int64_t max_tokens = 4096;  // limit for one replay
  int64_t max_segments = 32;
};

class Packing {
 public:
  // Returns UNIMPLEMENTED naming the node that cannot be packed, and the errors of the passes.
  // `sequence_axis`: the index of options.sequence in Model::axes().
  static absl::StatusOr<Packing> Make(const Graph& symbolic, const PackOptions& options,
                                      int sequence_axis, const PackingLimits& limits);

  const Graph& graph() const { return *graph_; }
  const GraphFingerprint& fingerprint() const { return fingerprint_; }
  int sequence_axis() const { return sequence_axis_; }
  int64_t longest() const { return longest_; }  // tokens of a segment
  // Returns whether something is quantised by the range of its request, which rows of a request
  // share.
  bool has_request_scales() const { return has_request_scales_; }
  int64_t max_segments() const { return max_segments_; }
  // Returns the numbers of tokens that recipes are compiled for, ascending: powers of two, and the
  // largest. The largest holds a segment of `longest`, and as many segments as there may be.
  const std::vector<int64_t>& buckets() const { return buckets_; }
  // Returns the segments that a recipe of a bucket has room for: at most one for two tokens, so
  // that a number of rows never looks like a number of tokens.
  int64_t SegmentsOf(int64_t tokens) const;
  // Returns the smallest bucket that holds these sizes; nullopt where none does.
  std::optional<PackedSizes> Fit(const PackedSizes& sizes) const;

  RecipeKey KeyAt(const PackedSizes& sizes, const std::string& device, KeyPolicy policy = {}) const;

 private:
  Packing() = default;

  HeldGraph graph_;
  GraphFingerprint fingerprint_;
  int sequence_axis_ = -1;
  int64_t longest_ = 0;
  bool has_request_scales_ = false;
  int64_t max_segments_ = 0;
  std::vector<int64_t> buckets_;
};

// Returns the sizes that a packed recipe has room for.
PackedSizes PackedSizesOf(const RecipeKey& key);
// Returns the axes that a packed recipe may be larger along.
const std::set<std::string>& PackedAxes();
// Returns "t512".
std::string PackedLabel(int64_t tokens);

}  // namespace reprise

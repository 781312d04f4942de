// The form that fuse_attention matches, from any exporter: softmax(q k^T * scale + mask) v.
#pragma once

#include <optional>
#include <vector>

#include "runtime/graph/node.h"

namespace reprise {

// A mask that is added to the scores, or takes their place, before the Softmax.
struct AttentionMask {
  enum class Kind {
    kAdd,      // scores + value
    kSub,      // scores - value
    kKeep,     // where(value, scores, fill)
    kReplace,  // where(value, fill, scores)
    kFloor,    // max(scores, fill); there is no value
  };
  Kind kind = Kind::kAdd;
  ValueId value = kNone;
  double fill = 0;     // -inf, or a number of which `kLowestFill` and `kLowFill` say how low
  double scale = 1;    // the factor of the sum of scores and mask; `fill` has it already
  Shape scores_shape;  // shape of the scores where the mask meets them
};

// A float32 score below 1e23 added to a fill of this or less leaves it as it is.
inline constexpr double kLowestFill = -1e30;
// A fill of this or less weighs nothing compared with a score that is not hidden: half precision
// has none that is lower than -65504.
inline constexpr double kLowFill = -6e4;

struct AttentionPattern {
  ValueId q = kNone;  // [..., Sq, D]
  // [..., D, Skv], or [..., Skv, D] when `k_rows`, and [..., Skv, Dv]. The second of four dims may
  // be 1: then all heads of queries share that one head of keys or values.
  ValueId k = kNone;
  ValueId v = kNone;
  bool k_rows = false;
  double scale = 1;
  double softcap = 0;  // 0: none; otherwise softcap * tanh(score / softcap), before the masks
  // A score next to the scores of keys that has no value, [batch, heads, queries, 1]; kNone: none.
  ValueId sinks = kNone;
  std::vector<AttentionMask> masks;  // the one that the Softmax meets first, first
  bool nan_to_zero = false;          // fully masked rows give zeros
  ValueId result = kNone;            // [..., Sq, Dv]
  Shape scores_shape;                // [..., Sq, Skv] as the product of q and k gives them
  // [batch, heads] where a four-dimensional score says so.
  std::optional<std::pair<int64_t, int64_t>> batch_and_heads;
  // [queries, heads] where q has the heads of each query as rows one after another, which share one
  // head of keys and values: masks meet scores [batch, queries, heads, Skv].
  std::optional<std::pair<int64_t, int64_t>> queries_and_heads;
};

// Returns the attention around one Softmax; nullopt when it is none, or when a value between the
// two products has another reader.
std::optional<AttentionPattern> MatchAttention(const Graph& graph, NodeId softmax);

}  // namespace reprise

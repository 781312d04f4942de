#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/kit/fold.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/rules.h"
#include "runtime/passes/simplify/rules_deform.h"
#include "runtime/passes/simplify/simplify_passes.h"

namespace reprise {
namespace {

// Rewrites feed each other (an Expand moves below one node a round); deep chains end here.
constexpr int kMaxRounds = 64;
// Folding of new constants stays small: the rest is computed when the graph runs.
constexpr int64_t kMaxCanonicalBytes = 1 << 20;

// Tries the rules on one node until one fires; users of changed values are looked at again.
absl::StatusOr<bool> RewriteNode(Graph& graph, NodeId id, FoldAllowance& allowance,
                                 std::vector<NodeId>& next) {
  ASSIGN_OR_RETURN(const bool folded, allowance.Fold(graph, id));
  if (folded) return true;
  const ValueId output = graph.node(id).output(0);
  if (output == kNone) return false;
  for (const RewriteRule rule : {ForwardRule,
                                 ViewRule,
                                 TransposeRule,
                                 ArithmeticRule,
                                 ByteResizeRule,
                                 VariadicRule,
                                 MishRule,
                                 LogicRule,
                                 GatherNdRule,
                                 WholeGatherRule,
                                 FlatRowsRule,
                                 CountedRowsRule,
                                 WholePiecesRule,
                                 WholeScatterRule,
                                 ExpandRule,
                                 ReduceRule,
                                 SoftmaxRule,
                                 GemmRule,
                                 FusedMatMulRule,
                                 FlattenedRowsRule,
                                 EinsumRule,
                                 SplitFeaturesRule,
                                 ContribRule,
                                 NamedAttentionRule,
                                 ProjectedAttentionRule,
                                 RotaryEmbeddingRule,
                                 EmbeddingNormRule,
                                 QuantizeRule,
                                 OuterProductRule,
                                 RepeatedRowsRule,
                                 TransposedBroadcastRule,
                                 DeformConvRule}) {
    ASSIGN_OR_RETURN(const ValueId replacement, rule(graph, id));
    if (replacement == kNone) continue;
    if (replacement != output) {
      for (NodeId user : graph.value(output).users) next.push_back(user);
      Replace(graph, output, replacement);
    } else {
      next.push_back(id);
    }
    return true;
  }
  return false;
}

absl::StatusOr<bool> CanonicalizeIn(Graph& graph) {
  FoldAllowance allowance(graph, kMaxCanonicalBytes);
  bool changed = false;
  std::vector<NodeId> work = graph.NodeIds();
  for (int round = 0; round < kMaxRounds && !work.empty(); ++round) {
    std::vector<NodeId> next;
    const NodeId first_new = static_cast<NodeId>(graph.num_nodes());
    for (NodeId id : work) {
      if (graph.node(id).removed) continue;
      ASSIGN_OR_RETURN(const bool rewritten, RewriteNode(graph, id, allowance, next));
      changed |= rewritten;
    }
    for (NodeId id = first_new; id < static_cast<NodeId>(graph.num_nodes()); ++id) {
      next.push_back(id);
    }
    work = std::move(next);
  }
  return changed;
}

}  // namespace

std::unique_ptr<Pass> Canonicalize() { return PassOf("canonicalize", CanonicalizeIn); }

}  // namespace reprise

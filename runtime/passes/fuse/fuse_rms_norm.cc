// The decomposed forms of RMSNormalization over the last dim: x / sqrt(mean(x * x) + epsilon) *
// gamma, with a division by the root or a product with its reciprocal.
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/norm_match.h"

namespace reprise {
namespace {

std::optional<NormStatistics> RmsStatisticsOf(const Graph& graph, const Node& node) {
  const NormKind kind = NormKind::kRootMeanSquare;
  if (node.op == DivOp::kName) {
    const auto statistics = MatchDeviation(graph, node.inputs[1], kind);
    return statistics.has_value() && statistics->x == node.inputs[0] ? statistics : std::nullopt;
  }
  if (node.op != MulOp::kName) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const auto statistics = MatchInverse(graph, node.inputs[side], kind);
    if (statistics.has_value() && statistics->x == node.inputs[1 - side]) return statistics;
  }
  return std::nullopt;
}

absl::StatusOr<bool> FuseRmsNormAt(Graph& graph, NodeId id) {
  const std::optional<NormStatistics> statistics = RmsStatisticsOf(graph, graph.node(id));
  if (!statistics.has_value()) return false;
  const ValueId normal = graph.node(id).outputs[0];
  const NodeId user = OnlyUser(graph, normal);
  if (user == kNone || graph.node(user).op != MulOp::kName) return false;
  ValueId gamma = OtherInput(graph.node(user), normal);
  if (gamma == kNone || !IsPerFeature(graph, gamma, statistics->x)) return false;
  const ValueId result = graph.node(user).outputs[0];
  const std::string name = graph.node(id).name;
  const int64_t features = ShapeOf(graph, statistics->x)->back();
  ASSIGN_OR_RETURN(gamma, AddReshape(graph, gamma, {features}));
  ASSIGN_OR_RETURN(
      const ValueId fused,
      AddInferred(graph, RmsNormalizationOp::kName, {statistics->x, gamma},
                  {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(statistics->epsilon)}},
                  name));
  Replace(graph, result, fused);
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseRmsNorm() { return PassOfNodes("fuse_rms_norm", FuseRmsNormAt); }

}  // namespace reprise

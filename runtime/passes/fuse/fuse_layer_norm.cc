// The decomposed forms of LayerNormalization over the last dim:
//
//   d = x - mean(x);  s = sqrt(mean(d * d) + epsilon)
//   d / s * gamma + beta          exporters of torch
//   d * (1 / s * gamma) + beta    and with the reciprocal or a power of -1/2 in place of the root
//   x * m + (beta - mean(x) * m), m = 1 / s * gamma    exporters of TensorFlow
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/norm_match.h"

namespace reprise {
namespace {

struct Match {
  NormStatistics statistics;
  ValueId gamma = kNone;   // kNone: ones
  ValueId beta = kNone;    // kNone: none
  ValueId result = kNone;  // the value that the LayerNormalization replaces
};

// (1 / s * gamma), in either order.
std::optional<Match> MatchMultiplier(const Graph& graph, ValueId value) {
  const Node* mul = graph.ProducerIf(value, MulOp::kName);
  if (mul == nullptr) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const auto statistics = MatchInverse(graph, mul->inputs[side], NormKind::kVariance);
    if (!statistics.has_value()) continue;
    if (!IsPerFeature(graph, mul->inputs[1 - side], statistics->x)) continue;
    return Match{*statistics, mul->inputs[1 - side]};
  }
  return std::nullopt;
}

// x * m + (beta - mean(x) * m).
std::optional<Match> MatchFoldedForm(const Graph& graph, const Node& add) {
  for (int side = 0; side < 2; ++side) {
    const Node* scaled = graph.ProducerIf(add.inputs[side], MulOp::kName);
    const Node* sub = graph.ProducerIf(add.inputs[1 - side], SubOp::kName);
    if (scaled == nullptr || sub == nullptr) continue;
    const Node* shift = graph.ProducerIf(sub->inputs[1], MulOp::kName);
    if (shift == nullptr) continue;
    for (int order = 0; order < 2; ++order) {
      const ValueId multiplier = scaled->inputs[order];
      auto match = MatchMultiplier(graph, multiplier);
      if (!match.has_value() || scaled->inputs[1 - order] != match->statistics.x) continue;
      const ValueId mean = OtherInput(*shift, multiplier);
      if (mean == kNone || (shift->inputs[0] != multiplier && shift->inputs[1] != multiplier) ||
          MeanOperand(graph, mean) != match->statistics.x ||
          !IsPerFeature(graph, sub->inputs[0], match->statistics.x)) {
        continue;
      }
      match->beta = sub->inputs[0];
      match->result = add.outputs[0];
      return match;
    }
  }
  return std::nullopt;
}

// d / s, d * (1 / s) or d * (1 / s * gamma).
std::optional<Match> MatchNormalized(const Graph& graph, const Node& node) {
  if (node.op == DivOp::kName) {
    const auto statistics = MatchDeviation(graph, node.inputs[1], NormKind::kVariance);
    if (!statistics.has_value() || CentredOperand(graph, node.inputs[0], false) != statistics->x) {
      return std::nullopt;
    }
    return Match{.statistics = *statistics, .result = node.outputs[0]};
  }
  for (int side = 0; side < 2; ++side) {
    const ValueId x = CentredOperand(graph, node.inputs[side], false);
    if (x == kNone) continue;
    if (auto match = MatchMultiplier(graph, node.inputs[1 - side]);
        match.has_value() && match->statistics.x == x) {
      match->result = node.outputs[0];
      return match;
    }
    const auto statistics = MatchInverse(graph, node.inputs[1 - side], NormKind::kVariance);
    if (statistics.has_value() && statistics->x == x) {
      return Match{.statistics = *statistics, .result = node.outputs[0]};
    }
  }
  return std::nullopt;
}

// Takes "* gamma" and "+ beta" in where they follow alone.
void ExtendWithScaleAndShift(const Graph& graph, Match& match) {
  if (match.gamma == kNone) {
    const NodeId user = OnlyUser(graph, match.result);
    if (user == kNone || graph.node(user).op != MulOp::kName) return;
    const ValueId gamma = OtherInput(graph.node(user), match.result);
    if (gamma == kNone || !IsPerFeature(graph, gamma, match.statistics.x)) return;
    match.gamma = gamma;
    match.result = graph.node(user).outputs[0];
  }
  const NodeId user = OnlyUser(graph, match.result);
  if (user == kNone || graph.node(user).op != AddOp::kName) return;
  const ValueId beta = OtherInput(graph.node(user), match.result);
  if (beta == kNone || !IsPerFeature(graph, beta, match.statistics.x)) return;
  match.beta = beta;
  match.result = graph.node(user).outputs[0];
}

absl::Status RewriteLayerNorm(Graph& graph, const Match& match) {
  const int64_t features = ShapeOf(graph, match.statistics.x)->back();
  ValueId gamma = match.gamma;
  if (gamma == kNone) {
    gamma = graph.AddConstant(
        "", Tensor::FromVector(DType::kFloat32, {features}, std::vector<float>(features, 1.0f)));
  }
  ASSIGN_OR_RETURN(gamma, AddReshape(graph, gamma, {features}));
  std::vector<ValueId> inputs = {match.statistics.x, gamma};
  if (match.beta != kNone) {
    ASSIGN_OR_RETURN(const ValueId beta, AddReshape(graph, match.beta, {features}));
    inputs.push_back(beta);
  }
  const std::string name = graph.node(ProducerOf(graph, match.result)).name;
  ASSIGN_OR_RETURN(const ValueId normalized,
                   AddInferred(graph, LayerNormalizationOp::kName, std::move(inputs),
                               {{"axis", int64_t{-1}},
                                {"epsilon", static_cast<float>(match.statistics.epsilon)}},
                               name));
  Replace(graph, match.result, normalized);
  return absl::OkStatus();
}

absl::StatusOr<bool> FuseLayerNormAt(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::optional<Match> match;
  if (node.op == DivOp::kName || node.op == MulOp::kName) {
    match = MatchNormalized(graph, node);
    if (match.has_value()) ExtendWithScaleAndShift(graph, *match);
  } else if (node.op == AddOp::kName) {
    match = MatchFoldedForm(graph, node);
  }
  if (!match.has_value()) return false;
  RETURN_IF_ERROR(RewriteLayerNorm(graph, *match));
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseLayerNorm() { return PassOfNodes("fuse_layer_norm", FuseLayerNormAt); }

}  // namespace reprise

#include "runtime/passes/match/norm_match.h"

#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {

ValueId MeanOperand(const Graph& graph, ValueId value) {
  const Node* mean = graph.ProducerIf(value, ReduceMeanOp::kName);
  if (mean == nullptr || !ReduceMeanOp::From(mean->attributes).keepdims) return kNone;
  const ValueId x = mean->inputs[0];
  const std::optional<double> axis = KnownScalar(graph, mean->input(1));
  if (!IsFloat32(graph, x) || !axis.has_value()) return kNone;
  const int64_t rank = static_cast<int64_t>(ShapeOf(graph, x)->size());
  return rank > 0 && (*axis == -1 || *axis == static_cast<double>(rank - 1)) ? x : kNone;
}

ValueId CentredOperand(const Graph& graph, ValueId value, bool either_sign) {
  const Node* sub = graph.ProducerIf(value, SubOp::kName);
  if (sub == nullptr) return kNone;
  if (MeanOperand(graph, sub->inputs[1]) == sub->inputs[0]) return sub->inputs[0];
  if (either_sign && MeanOperand(graph, sub->inputs[0]) == sub->inputs[1]) return sub->inputs[1];
  return kNone;
}

namespace {

// Returns the x of mean((x - mean(x)) ^ 2).
ValueId VarianceOperand(const Graph& graph, ValueId value) {
  const ValueId squares = MeanOperand(graph, value);
  if (squares == kNone) return kNone;
  if (const Node* pow = graph.ProducerIf(squares, PowOp::kName); pow != nullptr) {
    return IsScalar(graph, pow->inputs[1], 2) ? CentredOperand(graph, pow->inputs[0], true) : kNone;
  }
  const Node* mul = graph.ProducerIf(squares, MulOp::kName);
  if (mul == nullptr) return kNone;
  const ValueId a = CentredOperand(graph, mul->inputs[0], true);
  // Squared is the same difference; two of opposite sign would change the sign.
  const bool same =
      mul->inputs[0] == mul->inputs[1] || (CentredOperand(graph, mul->inputs[0], false) != kNone &&
                                           CentredOperand(graph, mul->inputs[0], false) ==
                                               CentredOperand(graph, mul->inputs[1], false));
  return same ? a : kNone;
}

// Returns the x of mean(x ^ 2).
ValueId MeanSquareOperand(const Graph& graph, ValueId value) {
  const ValueId squares = MeanOperand(graph, value);
  if (squares == kNone) return kNone;
  if (const Node* pow = graph.ProducerIf(squares, PowOp::kName); pow != nullptr) {
    return IsScalar(graph, pow->inputs[1], 2) ? pow->inputs[0] : kNone;
  }
  const Node* mul = graph.ProducerIf(squares, MulOp::kName);
  return mul != nullptr && mul->inputs[0] == mul->inputs[1] ? mul->inputs[0] : kNone;
}

// statistic(x) + epsilon.
std::optional<NormStatistics> MatchStatistics(const Graph& graph, ValueId value, NormKind kind) {
  const Node* add = graph.ProducerIf(value, AddOp::kName);
  if (add == nullptr) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const std::optional<double> epsilon = KnownScalar(graph, add->inputs[side]);
    if (!epsilon.has_value()) continue;
    const ValueId x = kind == NormKind::kVariance ? VarianceOperand(graph, add->inputs[1 - side])
                                                  : MeanSquareOperand(graph, add->inputs[1 - side]);
    if (x != kNone) return NormStatistics{x, *epsilon};
  }
  return std::nullopt;
}

bool IsPower(const Graph& graph, ValueId value, double exponent, ValueId* base) {
  const Node* pow = graph.ProducerIf(value, PowOp::kName);
  if (pow == nullptr || !IsScalar(graph, pow->inputs[1], exponent)) return false;
  *base = pow->inputs[0];
  return true;
}

}  // namespace

std::optional<NormStatistics> MatchDeviation(const Graph& graph, ValueId value, NormKind kind) {
  ValueId base = kNone;
  if (const Node* sqrt = graph.ProducerIf(value, SqrtOp::kName); sqrt != nullptr)
    base = sqrt->inputs[0];
  if (base == kNone && !IsPower(graph, value, 0.5, &base)) return std::nullopt;
  return MatchStatistics(graph, base, kind);
}

std::optional<NormStatistics> MatchInverse(const Graph& graph, ValueId value, NormKind kind) {
  if (const Node* node = graph.ProducerIf(value, ReciprocalOp::kName); node != nullptr) {
    return MatchDeviation(graph, node->inputs[0], kind);
  }
  if (const Node* node = graph.ProducerIf(value, DivOp::kName); node != nullptr) {
    return IsScalar(graph, node->inputs[0], 1) ? MatchDeviation(graph, node->inputs[1], kind)
                                               : std::nullopt;
  }
  ValueId base = kNone;
  return IsPower(graph, value, -0.5, &base) ? MatchStatistics(graph, base, kind) : std::nullopt;
}

bool IsPerFeature(const Graph& graph, ValueId weight, ValueId x) {
  if (!IsWeight(graph, weight) || !IsFloat32(graph, weight)) return false;
  const Shape& shape = *ShapeOf(graph, weight);
  const int64_t features = ShapeOf(graph, x)->back();
  return !shape.empty() && shape.size() <= ShapeOf(graph, x)->size() && shape.back() == features &&
         NumElements(shape) == features;
}

}  // namespace reprise

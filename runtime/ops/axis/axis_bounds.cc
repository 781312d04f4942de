// Bounds of an op's numbers, whatever the inputs of the model hold: never negative, never below
// one, never zero, never infinite.
#include <cmath>

#include "absl/algorithm/container.h"
#include "runtime/graph/elements.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/axis/axis_rule.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/reduce/reduce_op.h"

namespace reprise {
namespace {

// Producers that are looked through for a bound.
constexpr int kDeepest = 6;
// Powers that make nothing infinite of numbers that models compute with.
constexpr double kLargestPower = 4;

}  // namespace

bool AxisContext::IsAtLeastOne(size_t i) const {
  const auto is_bound = [&](ValueId value) {
    const Tensor* tensor = graph_.ConstantOf(value);
    return tensor != nullptr && AllElements(*tensor, [](double one) { return one >= 1; });
  };
  const ValueId value = node_.input(i);
  if (value == kNone) return false;
  if (is_bound(value)) return true;
  for (const absl::string_view op : {AddOp::kName, MaxOp::kName, ClipOp::kName, ExpOp::kName}) {
    const Node* node = graph_.ProducerIf(value, op);
    if (node == nullptr) continue;
    const auto nonnegative = [&](size_t k) {
      return node->input(k) != kNone && flows_[node->inputs[k]].nonnegative;
    };
    if (op == ExpOp::kName) return nonnegative(0);
    if (op == ClipOp::kName) return node->input(1) != kNone && is_bound(node->input(1));
    bool any_bound = false, all_nonnegative = true;
    for (size_t k = 0; k < node->inputs.size(); ++k) {
      any_bound = any_bound || is_bound(node->inputs[k]);
      all_nonnegative = all_nonnegative && nonnegative(k);
    }
    return any_bound && (op == MaxOp::kName || all_nonnegative);
  }
  return false;
}

bool AxisContext::MayWrap(size_t output) const {
  const OpFacts& facts = FactsOf(node_.op);
  const DType made = graph_.value(node_.outputs[output]).dtype;
  const bool widens = facts.sizes == Sizes::kConversion && IsInteger(dtype(0)) &&
                      DTypeSize(made) >= DTypeSize(dtype(0));
  // The least of all integers is the one that has no magnitude.
  const bool keeps = facts.OnlyMoves() || facts.border == Border::kPick || widens ||
                     facts.sizes == Sizes::kQuotient || facts.sizes == Sizes::kMagnitude;
  if (keeps || !IsInteger(made)) return false;
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (input(i).chosen && !facts.Chooses(i)) return true;
  }
  return false;
}

bool AxisContext::IsNonnegative(size_t output) const {
  if (IsNeverNegative(graph_.value(node_.outputs[output]).dtype)) return true;
  if (MayWrap(output)) return false;
  const OpRow* row = FindOp(node_.op);
  const OpFacts& facts = FactsOf(*row);
  const auto operand_is = [&](size_t i) { return has_input(i) && input(i).nonnegative; };
  switch (facts.sign) {
    case Sign::kUnknown:
      return false;
    case Sign::kNeverNegative:
      return true;
    case Sign::kPlacesAlone:
      return output > 0;
    case Sign::kOfLogarithm:
      return IsAtLeastOne(0);
    case Sign::kOfBounds:
      return operand_is(1);
    case Sign::kOfRemainder:
      // Remainders have the sign of the divisor; with `fmod` the sign of the dividend.
      return operand_is(attributes().Int("fmod", 0) != 0 ? 0 : 1);
    case Sign::kOfLargest:
      for (size_t i = 0; i < num_inputs(); ++i) {
        if (operand_is(i)) return true;
      }
      return false;
    case Sign::kOfProduct:
      // Squares of integers wrap around.
      if (node_.inputs[0] == node_.inputs[1] && IsFloating(dtype(0))) return true;
      break;
    case Sign::kOfPower:
      if (const auto power = Uniform(1);
          power.has_value() && std::fmod(*power, 2) == 0 && IsFloating(dtype(0))) {
        return true;
      }
      break;
    case Sign::kOfOperands:
      if (row->axis == ops::LiveFillAxis && attributes().Float("value", 0) < 0) return false;
      break;
  }
  for (size_t i = 0; i < num_inputs(); ++i) {
    const bool counts = has_input(i) && !row->IsValueInput(i) && !facts.Chooses(i);
    if (counts && !input(i).nonnegative) return false;
  }
  return true;
}

bool AxisContext::IsPositive(ValueId value, int depth) const {
  if (value == kNone || depth > kDeepest) return false;
  if (const Tensor* tensor = graph_.ConstantOf(value)) {
    return AllElements(*tensor, [](double one) { return one > 0; });
  }
  const NodeId producer = graph_.value(value).producer;
  if (producer == kNone) return false;
  const Node& node = graph_.node(producer);
  const OpFacts& facts = FactsOf(node.op);
  const auto is_positive = [&](ValueId input) { return IsPositive(input, depth + 1); };
  switch (facts.positive) {
    case Positive::kUnknown:
      return false;
    case Positive::kAlways:
      return true;
    case Positive::kOfFirst:
      return is_positive(node.input(0));
    case Positive::kOfBound:
      return is_positive(node.input(1));
    case Positive::kOfAny:
      return absl::c_any_of(node.inputs, is_positive);
    case Positive::kOfAll:
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!facts.Chooses(i) && !is_positive(node.inputs[i])) return false;
      }
      return true;
    case Positive::kOfSum:
      return absl::c_any_of(node.inputs, is_positive) &&
             absl::c_all_of(node.inputs, [&](ValueId input) {
               return flows_[input].nonnegative || is_positive(input);
             });
  }
  return false;
}

bool AxisContext::IsNotPositive(ValueId value) const {
  if (const Node* negated = graph_.ProducerIf(value, NegOp::kName)) {
    return flows_[negated->inputs[0]].nonnegative;
  }
  // Less the largest of them.
  const Node* difference = graph_.ProducerIf(value, SubOp::kName);
  if (difference == nullptr) return false;
  const Node* largest = graph_.ProducerIf(difference->inputs[1], ReduceMaxOp::kName);
  return largest != nullptr && largest->inputs[0] == difference->inputs[0];
}

bool AxisContext::MayOverflow() const {
  switch (FactsOf(node_.op).overflow) {
    case Overflow::kNever:
      return false;
    case Overflow::kAlways:
      return true;
    case Overflow::kExponential:
      return !IsNotPositive(node_.inputs[0]);
    case Overflow::kLogarithm:
      return !IsAtLeastOne(0) && !IsPositive(node_.inputs[0]);
    case Overflow::kRoot:
      return !input(0).nonnegative && !IsPositive(node_.inputs[0]);
    case Overflow::kInverse:
      return !IsPositive(node_.inputs[0]);
    case Overflow::kQuotient: {
      const Tensor* by = graph_.ConstantOf(node_.inputs[1]);
      const bool by_none = by != nullptr && AllElements(*by, [](double one) { return one != 0; });
      return !by_none && !IsPositive(node_.inputs[1]);
    }
    case Overflow::kPower: {
      const std::optional<double> power = Uniform(1);
      if (!power.has_value() || std::abs(*power) > kLargestPower) return true;
      const bool whole = *power == std::round(*power);
      if (*power >= 0) return !whole && !input(0).nonnegative && !IsPositive(node_.inputs[0]);
      return !IsPositive(node_.inputs[0]);
    }
  }
  return true;
}

bool AxisContext::LeavesOut(size_t i, const Positions& from) const {
  if (node_.op == MaxOp::kName) return num_inputs() > 1 && *from.padding < 0;
  if (node_.op == MinOp::kName) return num_inputs() > 1 && *from.padding > 0;
  if (node_.op != WhereOp::kName) return false;
  const auto own = [&](size_t operand) { return from.dim + this->rank(operand) - this->rank(i); };
  const Positions* chooser = input(WhereOp::kCondition).At(own(WhereOp::kCondition));
  const PaddingValue chosen = chooser != nullptr ? chooser->padding : Uniform(WhereOp::kCondition);
  return chosen.has_value() && i != (*chosen != 0 ? WhereOp::kThen : WhereOp::kElse);
}

bool AxisContext::LosesInfinity(size_t i, size_t output, const AxisFlowValue& result) const {
  const int64_t added = output_rank(output) - rank(i);
  int64_t infinite = 0, lost = 0;
  for (const Positions& from : input(i).along) {
    if (!from.IsInfinite() || LeavesOut(i, from)) continue;
    ++infinite;
    // Dims of the same rank are the same; positions that the result lacks have no padding there.
    const Positions* to = result.At(from.dim + added);
    lost += to != nullptr ? !to->padding.has_value() : added != 0;
  }
  const auto kept = absl::c_count_if(
      result.along, [](const Positions& positions) { return positions.IsInfinite(); });
  const bool any_unknown = absl::c_any_of(
      result.along, [](const Positions& positions) { return !positions.padding.has_value(); });
  return lost > 0 && any_unknown && kept < infinite;  // Moved dims keep what they hold.
}

bool AxisContext::MayBeUnbounded(size_t output, const AxisFlowValue& result) const {
  const OpRow* row = FindOp(node_.op);
  const bool floats = IsFloating(graph_.value(node_.outputs[output]).dtype);
  // A number that is divided by an infinite one becomes zero.
  const Overflow overflow = FactsOf(*row).overflow;
  const bool inverse = overflow == Overflow::kInverse;
  const bool divides = inverse || (overflow == Overflow::kQuotient && IsPositive(node_.inputs[1]));
  bool chosen = false;
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (!has_input(i) || row->IsValueInput(i)) continue;
    chosen = chosen || input(i).chosen;
    const bool divisor = divides && (i == 1 || inverse);
    if (divisor) continue;
    if (input(i).unbounded || (floats && LosesInfinity(i, output, result))) return true;
  }
  return chosen && floats && MayOverflow();
}

bool AxisContext::MayBeInfinite(size_t i) const {
  return input(i).unbounded || absl::c_any_of(input(i).along, [](const Positions& positions) {
           return positions.IsInfinite();
         });
}

bool AxisContext::MayBeInfiniteAt(size_t i, int64_t dim) const {
  const Positions* positions = input(i).At(dim);
  if (positions == nullptr) return false;
  return positions->padding.has_value() ? positions->IsInfinite() : input(i).unbounded;
}

}  // namespace reprise

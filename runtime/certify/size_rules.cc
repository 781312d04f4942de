#include "runtime/certify/size_rules.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/axis/axis_rule.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/reduce/arg_op.h"

namespace reprise {
namespace {

using Use = SizeUse;
using SizeElements = SizeFacts::Elements;

// Ops that sum, copy or move: straight lines stay straight.
bool KeepsLines(Sizes sizes) { return sizes >= Sizes::kSum && sizes <= Sizes::kJoin; }

class Rules {
 public:
  explicit Rules(const SizeFacts& facts) : facts_(facts), graph_(facts.graph()) {}

  SizeFlow Derive(NodeId id, ValueId output) const {
    const Node& node = graph_.node(id);
    const OpRow* row = FindOp(node.op);
    const Sizes sizes = FactsOf(*row).sizes;
    if (sizes == Sizes::kOfShape) return OfShape(node, output);
    Use most = Use::kFixed;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const SizeFlow& flow = facts_.In(node, i);
      if (flow.use == Use::kChosen) return flow;
      // An operand that a shape follows decides how many elements there are, not their values.
      const bool counts = !row->IsValueInput(i) || flow.use == Use::kSteps;
      if (counts) most = std::max(most, flow.use);
    }
    switch (sizes) {
      case Sizes::kComparison:
        return DeriveComparison(id, node, most);
      case Sizes::kChoice:
        return DeriveChoice(node, output, most);
      case Sizes::kConversion:
        return DeriveConversion(id, node, output, most);
      case Sizes::kCount:
        // Where it ends decides how long it is alone.
        return {.use = std::max({facts_.In(node, 0).use, facts_.In(node, 2).use, most})};
      case Sizes::kFill:
        return facts_.Fitted(output, most == Use::kSteps ? most : Use::kFixed);
      case Sizes::kCut:
        if (KeepsAll(node, output)) return facts_.In(node, 0);
        break;
      default:
        break;
    }
    if (KeepsLines(sizes)) return DeriveEven(id, node, sizes, output, most);
    if (most == Use::kFixed) return DeriveFixed(id, node, output);
    switch (sizes) {
      case Sizes::kExtreme:
        return DeriveExtreme(id, node, output, most);
      case Sizes::kBounded:
        return DeriveBounded(id, node, output, most);
      case Sizes::kQuotient:
      case Sizes::kRemainder:
        return DeriveQuotient(id, node, sizes, output, most);
      case Sizes::kRounding: {
        const SizeElements& from = facts_.In(node, 0).elements;
        const bool whole =
            !from.empty() && absl::c_all_of(from, [](const auto& p) { return p.is_whole(); });
        return whole ? facts_.Fitted(output, most) : SizeFlow{.use = Use::kSteps};
      }
      case Sizes::kMagnitude: {
        const SizeElements& from = facts_.In(node, 0).elements;
        const bool known = !from.empty() && absl::c_all_of(from, [&](const SizePolynomial& p) {
          const auto [least, largest] = facts_.RangeOf(p);
          return least >= 0 || largest <= 0;
        });
        return known ? facts_.Fitted(output, most) : Chosen(id);
      }
      case Sizes::kSmooth:
        return most == Use::kEven ? SizeFlow{.use = Use::kEven} : Chosen(id);
      default:
        return Chosen(id);
    }
  }

 private:
  SizeFlow OfShape(const Node& node, ValueId output) const {
    const SizeFlow& of = facts_.In(node, 0);
    if (of.use == Use::kChosen) return of;
    SizeFlow flow = facts_.Fitted(output, Use::kSteps);
    if (flow.use == Use::kSteps) flow.use = facts_.UseOfShape(output);
    return flow;
  }

  // Sizes, and what is copied, summed and multiplied of them: never below zero.
  bool AreCounts(ValueId of) const {
    constexpr size_t kMostValues = 256;
    // Each value once, however many ways lead to it.
    std::set<ValueId> seen;
    std::vector<ValueId> left = {of};
    while (!left.empty()) {
      const ValueId id = facts_.Resolved(left.back());
      left.pop_back();
      if (id == kNone || !seen.insert(id).second) continue;
      if (seen.size() > kMostValues) return false;
      if (graph_.value(id).kind == Value::Kind::kConstant) {
        const std::vector<double> values = graph_.value(id).constant.ToDoubles();
        if (absl::c_any_of(values, [](double value) { return value < 0; })) return false;
        continue;
      }
      const NodeId producer = graph_.value(id).producer;
      if (producer == kNone) return false;
      const Node& node = graph_.node(producer);
      const OpRow* row = FindOp(node.op);
      const OpFacts& facts = FactsOf(*row);
      if (facts.sizes == Sizes::kOfShape) continue;
      const bool keeps = facts.sign == Sign::kOfOperands || facts.sign == Sign::kOfProduct;
      if (!keeps || !KeepsLines(facts.sizes)) return false;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!row->IsValueInput(i) && !facts.Chooses(i)) left.push_back(node.inputs[i]);
      }
    }
    return true;
  }

  // Sizes that are compared with -1, as exporters do for every Expand, even where they are no
  // straight lines.
  std::optional<SizeElements> NeverEqual(const Node& node) const {
    if (node.op != EqualOp::kName) return std::nullopt;
    for (size_t side = 0; side < 2; ++side) {
      const SizeElements& other = facts_.In(node, 1 - side).elements;
      const bool below = !other.empty() && absl::c_all_of(other, [&](const SizePolynomial& one) {
        return facts_.RangeOf(one).second < 0;
      });
      const Tensor* any = facts_.AnySample(node.outputs[0]);
      if (!below || any == nullptr || !AreCounts(node.input(side))) continue;
      return SizeElements(any->num_elements(), SizePolynomial::Constant(facts_.axes(), 0));
    }
    return std::nullopt;
  }

  // Finds the result of a comparison for every element that holds wherever the sizes lie.
  std::optional<SizeElements> Decide(const Node& node) const {
    SizeElements results;
    const bool decided = facts_.ForEachPair(
        node.input(0), node.input(1), node.outputs[0],
        [&](const SizePolynomial& a, const SizePolynomial& b) {
          const auto [least, most] = facts_.RangeOf(a - b);
          std::optional<bool> holds;
          if (node.op == EqualOp::kName) {
            if (least > 0 || most < 0) holds = false;
            if (least == 0 && most == 0) holds = true;
          } else if (node.op == LessOp::kName || node.op == GreaterOrEqualOp::kName) {
            if (most < 0) holds = node.op == LessOp::kName;
            if (least >= 0) holds = node.op != LessOp::kName;
          } else {
            if (least > 0) holds = node.op == GreaterOp::kName;
            if (most <= 0) holds = node.op != GreaterOp::kName;
          }
          if (holds.has_value()) results.push_back(SizePolynomial::Constant(facts_.axes(), *holds));
          return holds.has_value();
        });
    if (!decided) return std::nullopt;
    return results;
  }

  // One operand of the two is the smaller one (or the larger one) wherever the sizes lie.
  bool OneWins(ValueId a, ValueId b, ValueId output) const {
    return facts_.ForEachPair(a, b, output,
                              [&](const SizePolynomial& left, const SizePolynomial& right) {
                                const auto [least, most] = facts_.RangeOf(left - right);
                                return least >= 0 || most <= 0;
                              });
  }

  SizeFlow Chosen(NodeId id) const { return {.use = Use::kChosen, .chooser = id}; }

  SizeFlow DeriveComparison(NodeId id, const Node& node, Use most) const {
    if (auto decided = NeverEqual(node)) {
      return {.use = Use::kFixed, .elements = *std::move(decided)};
    }
    if (auto decided = Decide(node)) return {.use = Use::kFixed, .elements = *std::move(decided)};
    return most == Use::kFixed ? SizeFlow{.use = most} : Chosen(id);
  }

  SizeFlow DeriveExtreme(NodeId id, const Node& node, ValueId output, Use most) const {
    const bool wins = node.inputs.size() == 1 ||
                      (node.inputs.size() == 2 && OneWins(node.inputs[0], node.inputs[1], output));
    return wins ? facts_.Fitted(output, most) : Chosen(id);
  }

  SizeFlow DeriveBounded(NodeId id, const Node& node, ValueId output, Use most) const {
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      const bool wins = node.inputs[i] == kNone || OneWins(node.inputs[0], node.inputs[i], output);
      if (!wins) return Chosen(id);
    }
    return facts_.Fitted(output, most);
  }

  SizeFlow DeriveChoice(const Node& node, ValueId output, Use most) const {
    const SizeFlow& condition = facts_.In(node, 0);
    if (condition.elements.empty() || !facts_.AllKnown(node)) return {.use = most};
    const bool constant = absl::c_all_of(
        condition.elements, [](const SizePolynomial& one) { return one.is_constant(); });
    return constant ? facts_.Fitted(output, most) : SizeFlow{.use = most};
  }

  SizeFlow DeriveConversion(NodeId id, const Node& node, ValueId output, Use most) const {
    const SizeFlow& from = facts_.In(node, 0);
    if (most == Use::kFixed) {
      return from.elements.empty() ? SizeFlow{.use = most} : facts_.Fitted(output, most);
    }
    const absl::StatusOr<DType> to = ops::DTypeFromOnnx(node.attributes.Int("to", 0));
    if (to.ok() && *to == DType::kBool) {
      SizeElements results;
      for (const SizePolynomial& one : from.elements) {
        const auto [least, largest] = facts_.RangeOf(one);
        if (least <= 0 && largest >= 0) return Chosen(id);
        results.push_back(SizePolynomial::Constant(facts_.axes(), 1));
      }
      return results.empty() ? Chosen(id)
                             : SizeFlow{.use = Use::kFixed, .elements = std::move(results)};
    }
    if (to.ok() && IsFloating(*to)) return facts_.Fitted(output, most);
    const bool whole =
        !from.elements.empty() &&
        absl::c_all_of(from.elements, [](const SizePolynomial& one) { return one.is_whole(); });
    if (whole) return facts_.Fitted(output, most);
    const Tensor* any = facts_.AnySample(facts_.Resolved(node.input(0)));
    return {.use = any != nullptr && IsFloating(any->dtype()) ? Use::kSteps : most};
  }

  SizeFlow DeriveQuotient(NodeId id, const Node& node, Sizes sizes, ValueId output,
                          Use most) const {
    // A dividend that steps by the divisor leaves the same remainder at every size.
    const auto divides = [&](const SizePolynomial& a, const SizePolynomial& b) {
      if (!b.is_constant()) return a.MultipleOf(b).has_value();
      return facts_.RangeOf(a).first >= 0 && facts_.Constant(b) > 0 &&
             a.StepsBy(facts_.Constant(b));
    };
    const bool exact = facts_.ForEachPair(node.input(0), node.input(1), output, divides);
    const Tensor* any = facts_.AnySample(facts_.Resolved(node.input(0)));
    const bool floats = any != nullptr && IsFloating(any->dtype());
    if (sizes == Sizes::kQuotient && floats) {
      const SizeFlow& by = facts_.In(node, 1);
      const bool straight = by.use == Use::kFixed && !by.elements.empty() &&
                            SizeFacts::AxesOf(by.elements) == 0 && facts_.AllKnown(node);
      return straight ? facts_.Fitted(output, most) : SizeFlow{.use = most};
    }
    if (exact) return facts_.Fitted(output, most);
    return sizes == Sizes::kQuotient ? SizeFlow{.use = Use::kSteps} : Chosen(id);
  }

  // Sums, products, copies.
  SizeFlow DeriveEven(NodeId id, const Node& node, Sizes sizes, ValueId output, Use most) const {
    bool straight = facts_.AllKnown(node);
    if (sizes == Sizes::kProduct) {
      straight = straight && (SizeFacts::AxesOf(facts_.In(node, 0).elements) &
                              SizeFacts::AxesOf(facts_.In(node, 1).elements)) == 0;
    }
    if (sizes == Sizes::kReduceProduct) {
      size_t seen = 0;
      for (const SizePolynomial& one : facts_.In(node, 0).elements) {
        straight = straight && (seen & one.axes()) == 0;
        seen |= one.axes();
      }
    }
    if (straight) {
      SizeFlow flow = facts_.Fitted(output, most);
      if (!flow.elements.empty()) {
        // Which number is looked up, or where a table is cut, by a size: that is a choice.
        if (PlaceFollowsSize(node, sizes) && flow.use == Use::kEven) return Chosen(id);
        if (PlaceFollowsSize(node, sizes) && SizeFacts::AxesOf(facts_.In(node, 0).elements) == 0)
          return Chosen(id);
        return flow;
      }
    }
    if (PlaceFollowsSize(node, sizes)) return Chosen(id);
    if (Reduces(sizes) && facts_.AnyVaries(node)) return Chosen(id);
    if (most != Use::kFixed || !facts_.AnyVaries(node)) return {.use = most};
    return {.use = KeepsPlaces(node, sizes, output) ? Use::kFixed : Use::kEven};
  }

  // A Slice from the beginning, or from as far before the end as there are elements: of all of them
  // at either size.
  bool KeepsAll(const Node& slice, ValueId output) const {
    const auto &low = facts_.LowShape(slice.input(0)), &high = facts_.HighShape(slice.input(0));
    const bool known = low && high && low == facts_.LowShape(output) &&
                       high == facts_.HighShape(output) && slice.input(3) != kNone;
    if (!known) return false;
    const SizeElements& starts = facts_.In(slice, 1).elements;
    const SizeElements& axes = facts_.In(slice, 3).elements;
    if (starts.empty() || starts.size() != axes.size()) return false;
    const auto rank = static_cast<int64_t>(low->size());
    for (size_t i = 0; i < starts.size(); ++i) {
      if (!axes[i].is_constant()) return false;
      auto dim = static_cast<int64_t>(facts_.Constant(axes[i]));
      if (dim < 0) dim += rank;
      const auto [at_low, at_high] = facts_.AtBoth(starts[i]);
      const bool none = at_low == 0 && at_high == 0;
      const bool all = at_low == -static_cast<double>((*low)[dim]) &&
                       at_high == -static_cast<double>((*high)[dim]);
      if (!none && !all) return false;
    }
    const SizeElements& steps = facts_.In(slice, 4).elements;
    return slice.input(4) == kNone ||
           (!steps.empty() && absl::c_all_of(steps, [&](const auto& one) {
             return one.is_constant() && facts_.Constant(one) == 1;
           }));
  }

  static bool Reduces(Sizes sizes) {
    return sizes == Sizes::kReduceSum || sizes == Sizes::kReduceProduct;
  }

  bool PlaceFollowsSize(const Node& node, Sizes sizes) const {
    if (sizes == Sizes::kLookup) return facts_.In(node, 1).use >= Use::kEven;
    if (sizes == Sizes::kCut)
      return facts_.In(node, 1).use >= Use::kEven || facts_.In(node, 4).use >= Use::kEven;
    return false;
  }

  // The elements at the first places stay there, however long the axis is.
  bool KeepsPlaces(const Node& node, Sizes sizes, ValueId output) const {
    const auto dims = facts_.VaryingDims(node.input(0));
    if (!dims || !facts_.VaryingDims(output)) return false;
    const auto integers = [&](size_t i) -> std::vector<double> {
      const Tensor* tensor = facts_.AnySample(facts_.Resolved(node.input(i)));
      return tensor == nullptr ? std::vector<double>() : tensor->ToDoubles();
    };
    const auto negative = [](double value) { return value < 0; };
    if (sizes == Sizes::kCut) {
      const std::vector<double> starts = integers(1), steps = integers(4), axes = integers(3);
      const auto rank = static_cast<int64_t>(facts_.LowShape(node.input(0))->size());
      const auto counts_from_end = [&](size_t dim) {
        for (size_t i = 0; i < std::max(starts.size(), steps.size()); ++i) {
          auto axis = i < axes.size() ? static_cast<int64_t>(axes[i]) : static_cast<int64_t>(i);
          if (axis < 0) axis += rank;
          const bool known = node.input(3) == kNone || i < axes.size();
          if (known && axis != static_cast<int64_t>(dim)) continue;
          if ((i < starts.size() && starts[i] < 0) || (i < steps.size() && steps[i] < 0)) {
            return true;
          }
        }
        return false;
      };
      return !absl::c_any_of(*dims, counts_from_end);
    }
    if (sizes == Sizes::kLookup) {
      const auto rank = static_cast<int64_t>(facts_.LowShape(node.input(0))->size());
      int64_t dim = node.attributes.Int("axis", 0);
      if (dim < 0) dim += rank;
      // Places in a table that does not grow are places; those in one that grows must not be
      // counted from its end.
      return !absl::c_linear_search(*dims, static_cast<size_t>(dim)) ||
             !absl::c_any_of(integers(1), negative);
    }
    if (sizes == Sizes::kJoin) {
      const auto rank = static_cast<int64_t>(facts_.LowShape(node.input(0))->size());
      int64_t dim = node.attributes.Int("axis", 0);
      if (dim < 0) dim += rank;
      for (size_t i = 0; i + 1 < node.inputs.size(); ++i) {
        const auto varying = facts_.VaryingDims(node.inputs[i]);
        if (!varying || absl::c_linear_search(*varying, static_cast<size_t>(dim))) return false;
      }
      return true;
    }
    if (sizes == Sizes::kView) return facts_.Places(node.input(0)) == facts_.Places(output);
    return !Reduces(sizes);
  }

  // The dims that follow the size pass through as they are: what a batch of masks is resized to.
  bool KeepsSizes(const std::vector<size_t>& dims, const Node& node, ValueId output) const {
    const Shape& low = *facts_.LowShape(node.input(0));
    const Shape& high = *facts_.HighShape(node.input(0));
    return absl::c_all_of(dims, [&](size_t d) {
      return (*facts_.LowShape(output))[d] == low[d] && (*facts_.HighShape(output))[d] == high[d];
    });
  }

  // Derives a result that does not depend on the size, though its own length may.
  SizeFlow DeriveFixed(NodeId id, const Node& node, ValueId output) const {
    const SizeFlow fixed = {.use = Use::kFixed};
    bool constants = facts_.AllKnown(node);
    for (const ValueId input : node.inputs) {
      constants = constants && SizeFacts::AxesOf(facts_.FlowOf(input).elements) == 0;
    }
    if (constants) return facts_.Fitted(output, Use::kFixed);
    const OpRow* row = FindOp(node.op);
    if (row->Has(kElementwise) || !facts_.AnyVaries(node)) return fixed;
    const auto from = facts_.VaryingDims(node.input(0)), to = facts_.VaryingDims(output);
    if (!from || !to) return Chosen(id);
    return StaysFixed(FactsOf(*row).growth, node, output, *from, *to) ? fixed : Chosen(id);
  }

  // `from`, `to`: the dims of operand 0 and of the result that follow the size.
  bool StaysFixed(Growth growth, const Node& node, ValueId output, const std::vector<size_t>& from,
                  const std::vector<size_t>& to) const {
    switch (growth) {
      case Growth::kUnknown:
        return false;
      case Growth::kKeepsPlaces:
        return true;
      case Growth::kReduces:
        return from.size() == to.size();
      case Growth::kProduct:
        return !absl::c_linear_search(from, facts_.LowShape(node.input(0))->size() - 1);
      case Growth::kContraction: {
        size_t varying = 0;
        for (const ValueId input : node.inputs) {
          varying += facts_.VaryingDims(input).value_or(from).size();
        }
        return varying == to.size();
      }
      case Growth::kResizes:
        return KeepsSizes(from, node, output);
      case Growth::kCumulates:
        return !CumSumOp::From(node.attributes).reverse;
      case Growth::kFindsOnes: {
        const ValueId value = facts_.Resolved(node.input(0));
        const NodeId producer = value == kNone ? kNone : graph_.value(value).producer;
        return producer != kNone && FactsOf(graph_.node(producer).op).sizes == Sizes::kFill;
      }
    }
    return false;
  }

  const SizeFacts& facts_;
  const Graph& graph_;
};

}  // namespace

SizeFlow DeriveSizeFlow(const SizeFacts& facts, NodeId id, ValueId output) {
  return Rules(facts).Derive(id, output);
}

}  // namespace reprise

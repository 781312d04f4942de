#include "runtime/certify/size_forms.h"

#include <cmath>

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/reshape_op.h"

namespace reprise {
namespace {

using Use = SizeUse;
using SizeElements = SizeFacts::Elements;

// "To the end", as exporters write it, is any number beyond all sizes.
constexpr double kBeyondAllSizes = 1e9;

class NodeForms {
 public:
  NodeForms(const SizeFacts& facts, const Node& node)
      : facts_(facts), node_(node), axis_(facts.question().position) {}

  absl::string_view Find() const {
    if (DropsDimsOfOne(node_)) return AnyDimFollows() ? "drops the dims that are 1" : "";
    const OpFacts& facts = FactsOf(node_.op);
    if (facts.sizes == Sizes::kCut)
      return CutsAlike() ? "" : "cuts where there is less than it asks for";
    if (facts.sizes == Sizes::kCount) return CountsUpwards() ? "" : "counts to a number";
    const OpRow* row = FindOp(node_.op);
    if (row == nullptr) return "";
    // The number of all positions along a dim, which is right at any size.
    if (row->axis == ops::LiveMaskAxis || row->axis == ops::LiveShareAxis ||
        row->axis == ops::LiveExtentAxis || row->axis == ops::LiveCompactAxis) {
      return "";
    }
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const SizeFlow& flow = facts_.In(node_, i);
      if (flow.use != Use::kEven) continue;
      if (row->IsValueInput(i)) {
        // Products of sizes are sizes at any size.
        if (!facts.Is(kTakesSizes) || !AreSizes(flow)) return "has a shape or a place";
      } else if (i > 0 && facts.Chooses(i)) {
        return "takes what lies at a place";
      }
    }
    return "";
  }

 private:
  bool Follows(const SizePolynomial& number) const { return number.DependsOn(axis_); }

  bool AnyDimFollows() const {
    const auto dims = facts_.DimsOf(node_.input(0));
    if (dims.has_value()) {
      return absl::c_any_of(*dims, [&](const auto& dim) { return Follows(dim); });
    }
    if (!facts_.LowShape(node_.input(0)).has_value()) return IsTaken();
    return facts_.Varies(node_.input(0));
  }

  // It does not lie in a branch that is not taken. Its operand may be what such a branch, which is
  // no node any more, has left of an If.
  bool IsTaken() const { return facts_.LowShape(node_.output(0)).has_value(); }

  bool AreSizes(const SizeFlow& flow) const {
    return !flow.elements.empty() && absl::c_all_of(flow.elements, [&](const auto& one) {
      return !Follows(one) || one.is_positive_product();
    });
  }

  // `number` is on one side of zero wherever the sizes lie, or does not follow this one.
  bool KeepsSign(const SizePolynomial& number) const {
    const auto [least, most] = facts_.RangeOf(number);
    return !Follows(number) || least >= 0 || most <= 0;
  }

  bool CutsAlike() const {
    const ValueId data = node_.input(0);
    if (!facts_.LowShape(data).has_value()) return !IsTaken();
    bool moves = facts_.Varies(data);
    for (size_t i = 1; i < node_.inputs.size(); ++i) {
      const Use use = facts_.In(node_, i).use;
      if (use == Use::kData) return false;
      moves = moves || use >= Use::kEven;
    }
    if (!moves) return true;
    const auto dims = facts_.DimsOf(data);
    const SizeElements &starts = facts_.In(node_, 1).elements, &ends = facts_.In(node_, 2).elements;
    const SizeElements &axes = facts_.In(node_, 3).elements, &steps = facts_.In(node_, 4).elements;
    const bool has_axes = node_.input(3) != kNone, has_steps = node_.input(4) != kNone;
    if (TakesEnds(starts, ends, dims.has_value()) || GrowsInSteps()) return true;
    const bool known = dims.has_value() && !starts.empty() && starts.size() == ends.size() &&
                       (!has_axes || axes.size() == starts.size()) &&
                       (!has_steps || steps.size() == starts.size());
    if (!known) return false;
    for (size_t i = 0; i < starts.size(); ++i) {
      if (has_axes && !axes[i].is_constant()) return false;
      if (has_steps && !steps[i].is_constant()) return false;
      auto dim = static_cast<int64_t>(has_axes ? facts_.Constant(axes[i]) : static_cast<double>(i));
      if (dim < 0) dim += static_cast<int64_t>(dims->size());
      if (dim < 0 || dim >= static_cast<int64_t>(dims->size())) return false;
      if (!BoundIsAlike(starts[i], (*dims)[dim]) || !BoundIsAlike(ends[i], (*dims)[dim]))
        return false;
    }
    return true;
  }

  // Behind strides a dim is known to have one position at least, and no more: the first and the
  // last one are there at any size.
  bool TakesEnds(const SizeElements& starts, const SizeElements& ends, bool dims_known) const {
    const auto is_end = [&](const SizePolynomial& bound) {
      const double at = bound.is_constant() ? facts_.Constant(bound) : 2;
      return std::abs(at) <= 1 || std::abs(at) >= kBeyondAllSizes;
    };
    return !dims_known && !starts.empty() && !ends.empty() && absl::c_all_of(starts, is_end) &&
           absl::c_all_of(ends, is_end);
  }

  // A table that is cut in steps, and not at its own end: behind that the model has no such size.
  bool GrowsInSteps() const {
    const ValueId output = node_.output(0);
    return !facts_.Varies(node_.input(0)) && facts_.In(node_, 1).use == Use::kFixed &&
           facts_.In(node_, 2).use == Use::kSteps &&
           facts_.LowShape(output) != facts_.HighShape(output);
  }

  // A start or an end lies on the same side of both ends of the dim, whatever this size is.
  bool BoundIsAlike(const SizePolynomial& bound, const SizePolynomial& dim) const {
    if (!Follows(bound) && !Follows(dim)) return true;
    if (bound.is_constant()) {
      const double at = facts_.Constant(bound);
      if (std::abs(at) >= kBeyondAllSizes) return true;
      // Counted from the end, or from the beginning: within the dim, or beyond it.
      const SizePolynomial left = dim - SizePolynomial::Constant(facts_.axes(), at < 0 ? -at : at);
      return KeepsSign(left);
    }
    return facts_.RangeOf(bound).first >= 0 && KeepsSign(dim - bound);
  }

  bool CountsUpwards() const {
    bool moves = false;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      moves = moves || facts_.In(node_, i).use >= Use::kEven;
    }
    if (!moves) return true;
    const SizeElements &start = facts_.In(node_, 0).elements, &limit = facts_.In(node_, 1).elements;
    const SizeElements& delta = facts_.In(node_, 2).elements;
    if (start.size() != 1 || limit.size() != 1 || delta.size() != 1) return false;
    if (!delta[0].is_constant() || facts_.Constant(delta[0]) <= 0) return false;
    return facts_.RangeOf(limit[0] - start[0]).first >= 0;
  }

  const SizeFacts& facts_;
  const Node& node_;
  const size_t axis_;
};

}  // namespace

bool DropsDimsOfOne(const Node& node) {
  return node.op == SqueezeOp::kName && (node.inputs.size() < 2 || node.inputs[1] == kNone);
}

bool MayHoldSizeForms(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) {
    const Node& node = graph.node(id);
    const Sizes sizes = FactsOf(node.op).sizes;
    return sizes == Sizes::kOfShape || sizes == Sizes::kCut || node.op == ReshapeOp::kName ||
           DropsDimsOfOne(node);
  });
}

absl::string_view FormThatFollowsSize(const SizeFacts& facts, const Node& node) {
  return NodeForms(facts, node).Find();
}

}  // namespace reprise

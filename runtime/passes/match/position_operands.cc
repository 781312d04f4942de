#include "runtime/passes/match/position_operands.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/quantized/integer_linear_op.h"
#include "runtime/ops/quantized/linear_form.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

using Operands = std::optional<std::vector<PositionOperand>>;

// The input of a rule: a node, and the dim of its first result along which positions are picked.
struct Site {
  const Graph& graph;
  const Node& node;
  const Shape& out;
  int64_t axis;

  int64_t rank() const { return static_cast<int64_t>(out.size()); }
  int64_t positions() const { return out[axis]; }
  bool has(size_t i) const { return node.input(i) != kNone; }
  const Shape& shape(size_t i) const { return *ShapeOf(graph, node.input(i)); }
  // Operand `i` has the dims of the result, up to and with the one of the positions.
  bool LeadsAlike(size_t i) const {
    const Shape& dims = shape(i);
    return static_cast<int64_t>(dims.size()) > axis &&
           std::equal(out.begin(), out.begin() + axis + 1, dims.begin());
  }
  // Attribute `axis`, or `fallback`, of operand 0; -1 where it is none.
  int64_t AxisAttribute(int64_t fallback) const {
    return NormalizeAxis(node.attributes.Int("axis", fallback),
                         static_cast<int64_t>(shape(0).size()))
        .value_or(-1);
  }
};

// Returns the operand at the place of the positions, when others are shared by all.
Operands First(const Site& site) {
  if (!site.LeadsAlike(0)) return std::nullopt;
  return {{{0, site.axis}}};
}

// Operands that broadcast to the result.
Operands Broadcast(const Site& site) {
  std::vector<PositionOperand> operands;
  for (size_t i = 0; i < site.node.inputs.size(); ++i) {
    if (!site.has(i)) continue;
    const Shape& dims = site.shape(i);
    const int64_t axis = site.axis - (site.rank() - static_cast<int64_t>(dims.size()));
    if (axis < 0 || dims[axis] == 1) continue;
    if (dims[axis] != site.positions()) return std::nullopt;
    operands.push_back({i, axis});
  }
  if (operands.empty()) return std::nullopt;
  return operands;
}

// Operands as large as the result.
Operands AsLarge(const Site& site, std::initializer_list<size_t> large) {
  std::vector<PositionOperand> operands;
  for (const size_t i : large) {
    if (!site.has(i)) continue;
    if (static_cast<int64_t>(site.shape(i).size()) != site.rank() || !site.LeadsAlike(i)) {
      return std::nullopt;
    }
    operands.push_back({i, site.axis});
  }
  return operands;
}

Operands Linear(const Site& site) {
  const ops::LinearForm& form = *ops::LinearFormOf(site.node.op);
  if (site.shape(1).size() != 2 || site.axis == site.rank() - 1) return std::nullopt;
  Operands operands = AsLarge(site, {0, form.residual});
  if (!operands.has_value() || form.op != IntegerLinearOp::kName) return operands;
  // A scale and a zero point for each row, or one for all.
  for (const size_t i : {2, 4}) {
    if (!site.has(i) || NumElements(site.shape(i)) == 1) continue;
    const Operands of_rows = AsLarge(site, {i});
    if (!of_rows.has_value()) return std::nullopt;
    absl::c_copy(*of_rows, std::back_inserter(*operands));
  }
  return operands;
}

// Along dims after the one of the positions.
Operands Norm(const Site& site) {
  if (site.AxisAttribute(-1) <= site.axis) return std::nullopt;
  return site.node.op == AddLayerNormOp::kName ? AsLarge(site, {0, 1}) : First(site);
}

Operands AlongAnotherAxis(const Site& site, int64_t fallback) {
  const int64_t axis = site.AxisAttribute(fallback);
  if (axis < 0 || axis == site.axis) return std::nullopt;
  return First(site);
}

Operands Slice(const Site& site) {
  constexpr size_t kAxes = SliceOp::kAxes;
  const Tensor* constant =
      site.has(kAxes) ? site.graph.ConstantOf(site.node.input(kAxes)) : nullptr;
  if (constant == nullptr) return std::nullopt;
  const absl::StatusOr<std::vector<int64_t>> axes = constant->ToInt64s();
  if (!axes.ok()) return std::nullopt;
  for (const int64_t value : *axes) {
    if (NormalizeAxis(value, site.rank()).value_or(site.axis) == site.axis) return std::nullopt;
  }
  return First(site);
}

// Elements of the last dim are turned in pairs.
Operands Rotary(const Site& site) {
  return site.axis == site.rank() - 1 ? std::nullopt : Broadcast(site);
}

Operands Quantisation(const Site& site) {
  return NumElements(site.shape(1)) == 1 ? First(site) : std::nullopt;
}

}  // namespace

std::optional<std::vector<PositionOperand>> PositionOperandsOf(const Graph& graph, const Node& node,
                                                               int64_t axis) {
  if (node.output(0) == kNone || node.input(0) == kNone) return std::nullopt;
  const Site site = {graph, node, *ShapeOf(graph, node.output(0)), axis};
  const OpRow* row = FindOp(node.op);
  if (row == nullptr || site.rank() <= axis || site.positions() < 2) return std::nullopt;
  if (row->Has(kElementwise)) return Broadcast(site);
  switch (FactsOf(*row).positions) {
    case PositionRule::kNone:
      return std::nullopt;
    case PositionRule::kAlongAxis:
      return AlongAnotherAxis(site, FactsOf(*row).axis);
    case PositionRule::kFirst:
      return First(site);
    case PositionRule::kLinear:
      return Linear(site);
    case PositionRule::kNorm:
      return Norm(site);
    case PositionRule::kQuantisation:
      return Quantisation(site);
    case PositionRule::kRotary:
      return Rotary(site);
    case PositionRule::kSlice:
      return Slice(site);
  }
  return std::nullopt;
}

}  // namespace reprise

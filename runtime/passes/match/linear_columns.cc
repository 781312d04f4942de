#include "runtime/passes/match/linear_columns.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/quantized/integer_linear_op.h"
#include "runtime/ops/quantized/linear_form.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// Inputs with one element for each column, or one for all.
std::vector<size_t> ColumnOperands(const ops::LinearForm& form) {
  if (form.op == IntegerLinearOp::kName) return {1, 3, 5, form.bias};
  return {1, form.bias};
}

// Returns the part of a joined weight that is its columns [begin, begin + count); nullptr: there is
// none.
ParameterExprPtr PartOf(const ParameterExpr& joined, int64_t axis, int64_t begin, int64_t count) {
  if (joined.op() != ConcatOp::kName || ConcatOp::From(joined.attributes()).axis != axis)
    return nullptr;
  int64_t at = 0;
  for (const ParameterExprPtr& part : joined.inputs()) {
    if (part == nullptr || static_cast<int64_t>(part->shape().size()) != axis + 1) return nullptr;
    if (at == begin && part->shape().back() == count) return part;
    at += part->shape().back();
  }
  return nullptr;
}

absl::StatusOr<ValueId> CutOperand(Graph& graph, ValueId weight, int64_t begin, int64_t count) {
  if (weight == kNone || HasOneElement(graph, weight)) return weight;
  Shape shape = *ShapeOf(graph, weight);
  shape.back() = count;
  const int64_t axis = static_cast<int64_t>(shape.size()) - 1;
  if (IsParameter(graph, weight)) {
    const ParameterExprPtr part = PartOf(*graph.value(weight).parameter, axis, begin, count);
    if (part != nullptr) return AddExpression(graph, part);
  }
  const DType dtype = graph.value(weight).dtype;
  const auto ints = [&](int64_t one) { return graph.AddConstant("", Tensor::Int64s({one})); };
  const ValueId from = ints(begin), to = ints(begin + count), along = ints(axis);
  return AddWeight(graph, SliceOp::kName, {}, {weight, from, to, along}, dtype, std::move(shape));
}

}  // namespace

bool HasColumnsToCut(const Graph& graph, const Node& node) {
  const ops::LinearForm* form = ops::LinearFormOf(node.op);
  if (form == nullptr || node.input(form->residual) != kNone ||
      !IsParameter(graph, node.inputs[1]) || ShapeOf(graph, node.inputs[1])->size() != 2) {
    return false;
  }
  return absl::c_all_of(ColumnOperands(*form), [&](size_t i) {
    return node.input(i) == kNone || IsWeight(graph, node.inputs[i]);
  });
}

absl::StatusOr<std::vector<ValueId>> CutColumns(Graph& graph, const Node& node, int64_t begin,
                                                int64_t count) {
  std::vector<ValueId> inputs = node.inputs;
  for (const size_t i : ColumnOperands(*ops::LinearFormOf(node.op))) {
    if (i >= inputs.size()) continue;
    ASSIGN_OR_RETURN(inputs[i], CutOperand(graph, inputs[i], begin, count));
  }
  return inputs;
}

}  // namespace reprise

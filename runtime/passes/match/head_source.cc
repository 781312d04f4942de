#include "runtime/passes/match/head_source.h"

#include <optional>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/strided_view.h"

namespace reprise {

NodeId StepToHeads(const Graph& graph, ValueId value, bool scalable, ValueId* above,
                   double* scale) {
  const NodeId producer = ProducerOf(graph, value);
  if (producer == kNone) return kNone;
  const Node& node = graph.node(producer);
  *scale = 1;
  *above = node.inputs.empty() ? kNone : node.inputs[0];
  if (node.op == ReshapeOp::kName || node.op == TransposeOp::kName || node.op == GatherOp::kName ||
      node.op == SplitOp::kName || node.op == SliceOp::kName) {
    return *above != kNone && IsFloat32(graph, *above) ? producer : kNone;
  }
  if (!scalable || (node.op != MulOp::kName && node.op != DivOp::kName)) return kNone;
  for (int side = 1; side >= (node.op == MulOp::kName ? 0 : 1); --side) {
    const auto factor = KnownScalar(graph, node.inputs[side]);
    *above = node.inputs[1 - side];
    if (!factor.has_value() || !SameShape(graph, *above, value)) continue;
    *scale = node.op == MulOp::kName ? *factor : 1 / *factor;
    return producer;
  }
  return kNone;
}

std::vector<HeadSource> FindHeadSources(const Graph& graph, const HeadOperand& operand) {
  std::vector<HeadSource> sources;
  std::vector<std::pair<NodeId, ValueId>> path;  // upwards from the operand: node, its output
  ValueId value = operand.value;
  double scale = 1;
  for (int step = 0; step <= kMaxHeadSteps; ++step) {
    const Shape& shape = *ShapeOf(graph, value);
    std::optional<StridedView> view = StridedView::Dense(shape);
    for (auto it = path.rbegin(); it != path.rend() && view.has_value(); ++it) {
      const std::string& op = graph.node(it->first).op;
      if (op == MulOp::kName || op == DivOp::kName) continue;
      view = view->Through(graph, it->first, it->second);
    }
    const int64_t tokens = operand.batch * operand.rows;
    const int64_t elements = NumElements(shape);
    if (view.has_value() && elements % tokens == 0) {
      const int64_t width = elements / tokens;
      const StridedView::Atom batch = {operand.batch, operand.rows * width};
      const StridedView::Atom head = {operand.heads, operand.size};
      const StridedView::Atom row = {operand.rows, width};
      const StridedView::Atom column = {operand.size, 1};
      const StridedView expected = operand.swapped
                                       ? StridedView::Strided({batch, head, column, row})
                                       : StridedView::Strided({batch, head, row, column});
      if (view->Merged() == expected.Merged() &&
          view->offset() + operand.heads * operand.size <= width) {
        sources.push_back({value, width, view->offset(), scale});
      }
    }
    ValueId above = kNone;
    double factor = 1;
    const NodeId node = StepToHeads(graph, value, operand.scalable, &above, &factor);
    if (node == kNone) break;
    path.emplace_back(node, value);
    scale *= factor;
    value = above;
  }
  return sources;
}

const HeadSource* PlainHeadSource(const std::vector<HeadSource>& sources,
                                  const HeadOperand& operand) {
  const HeadSource* found = nullptr;
  for (const HeadSource& source : sources) {
    if (source.width == operand.heads * operand.size) found = &source;
  }
  return found;
}

absl::StatusOr<ValueId> AddTokens(Graph& graph, const HeadSource& source,
                                  const HeadOperand& operand) {
  const int64_t columns = operand.heads * operand.size;
  ASSIGN_OR_RETURN(const ValueId tokens,
                   AddReshape(graph, source.value, {operand.batch, operand.rows, source.width}));
  if (source.width == columns) return tokens;
  const auto ints = [&](int64_t value) { return graph.AddConstant("", Tensor::Int64s({value})); };
  return AddInferred(
      graph, SliceOp::kName,
      {tokens, ints(source.offset), ints(source.offset + columns), ints(2), ints(1)});
}

}  // namespace reprise

#include "runtime/passes/simplify/rules_deform.h"

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {

absl::StatusOr<ValueId> DeformConvRule(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  using In = DeformConvOp;
  if (node.op != DeformConvOp::kName || DeformConvOp::From(node.attributes).group != 1 ||
      !IsFloat32(graph, node.outputs[0]) || !IsWeight(graph, node.input(In::kWeight))) {
    return kNone;
  }
  const std::optional<Shape> shape = ShapeOf(graph, node.outputs[0]);
  const std::optional<Shape> weight = ShapeOf(graph, node.input(In::kWeight));
  if (!shape.has_value() || !weight.has_value()) return kNone;
  Attributes attributes = node.attributes;
  attributes.Erase("group");
  attributes.Set("kernel_shape", std::vector<int64_t>(weight->begin() + 2, weight->end()));
  std::vector<ValueId> inputs = {node.inputs[In::kX], node.inputs[In::kOffset]};
  if (node.input(In::kMask) != kNone) inputs.push_back(node.inputs[In::kMask]);
  ASSIGN_OR_RETURN(const ValueId columns, AddInferred(graph, DeformColumnsOp::kName,
                                                      std::move(inputs), attributes, node.name));
  const int64_t maps = (*weight)[0];
  const int64_t depth = NumElements(absl::Span<const int64_t>(*weight).subspan(1));
  ASSIGN_OR_RETURN(const ValueId flat, AddReshape(graph, node.inputs[In::kWeight], {maps, depth}));
  ASSIGN_OR_RETURN(const ValueId right,
                   AddWeight(graph, TransposeOp::kName, {{"perm", std::vector<int64_t>{1, 0}}},
                             {flat}, DType::kFloat32, {depth, maps}));
  ASSIGN_OR_RETURN(ValueId sums,
                   AddInferred(graph, MatMulOp::kName, {columns, right}, {}, node.name));
  if (node.input(In::kBias) != kNone) {
    ASSIGN_OR_RETURN(
        sums, AddInferred(graph, AddOp::kName, {sums, node.inputs[In::kBias]}, {}, node.name));
  }
  ASSIGN_OR_RETURN(const ValueId planes,
                   AddInferred(graph, TransposeOp::kName, {sums},
                               {{"perm", std::vector<int64_t>{0, 2, 1}}}, node.name));
  return AddReshape(graph, planes, *shape);
}

}  // namespace reprise

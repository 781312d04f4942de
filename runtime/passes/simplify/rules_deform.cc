#include "runtime/passes/simplify/rules_deform.h"

#include "runtime/base/status_macros.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {

absl::StatusOr<ValueId> DeformConvRule(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  constexpr size_t kX = 0, kWeight = 1, kOffset = 2, kBias = 3, kMask = 4;
  if (node.op != "DeformConv" || node.attributes.Int("group", 1) != 1 ||
      !IsFloat32(graph, node.outputs[0]) || !IsWeight(graph, node.input(kWeight))) {
    return kNone;
  }
  const std::optional<Shape> shape = ShapeOf(graph, node.outputs[0]);
  const std::optional<Shape> weight = ShapeOf(graph, node.input(kWeight));
  if (!shape.has_value() || !weight.has_value()) return kNone;
  Attributes attributes = node.attributes;
  attributes.Erase("group");
  attributes.Set("kernel_shape", std::vector<int64_t>(weight->begin() + 2, weight->end()));
  std::vector<ValueId> inputs = {node.inputs[kX], node.inputs[kOffset]};
  if (node.input(kMask) != kNone) inputs.push_back(node.inputs[kMask]);
  ASSIGN_OR_RETURN(const ValueId columns, AddInferred(graph, "reprise.DeformColumns",
                                                      std::move(inputs), attributes, node.name));
  const int64_t maps = (*weight)[0];
  const int64_t depth = NumElements(absl::Span<const int64_t>(*weight).subspan(1));
  ASSIGN_OR_RETURN(const ValueId flat, AddReshape(graph, node.inputs[kWeight], {maps, depth}));
  ASSIGN_OR_RETURN(const ValueId right,
                   AddWeight(graph, "Transpose", {{"perm", std::vector<int64_t>{1, 0}}}, {flat},
                             DType::kFloat32, {depth, maps}));
  ASSIGN_OR_RETURN(ValueId sums, AddInferred(graph, "MatMul", {columns, right}, {}, node.name));
  if (node.input(kBias) != kNone) {
    ASSIGN_OR_RETURN(sums, AddInferred(graph, "Add", {sums, node.inputs[kBias]}, {}, node.name));
  }
  ASSIGN_OR_RETURN(const ValueId planes,
                   AddInferred(graph, "Transpose", {sums},
                               {{"perm", std::vector<int64_t>{0, 2, 1}}}, node.name));
  return AddReshape(graph, planes, *shape);
}

}  // namespace reprise

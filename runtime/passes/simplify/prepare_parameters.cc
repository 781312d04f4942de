#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/kit/branches.h"
#include "runtime/passes/kit/fold.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/simplify_passes.h"

namespace reprise {
namespace {

// Returns whether the prepare program can compute a node: one result, weights alone, a parameter.
bool DependsOnParametersAlone(const Graph& graph, const Node& node) {
  const OpRow* row = FindOp(node.op);
  if (row == nullptr || row->Has(kNoFold) || row->Has(kDataDependent) || row->Has(kShapeOnly)) {
    return false;
  }
  if (node.outputs.size() != 1 || node.outputs[0] == kNone) return false;
  bool parameter = false;
  for (ValueId input : node.inputs) {
    if (input == kNone) continue;
    if (!IsWeight(graph, input)) return false;
    parameter |= IsParameter(graph, input);
  }
  return parameter;
}

// Folds shapes of expressions, which are known only now, and values computed from shapes alone: a
// weight that is reshaped by its own size, say. `folded`: values that became constants here.
absl::StatusOr<bool> FoldShapes(Graph& graph, NodeId id, std::vector<bool>& folded) {
  constexpr int64_t kMaxShapeBytes = 4096;
  const Node& node = graph.node(id);
  const OpRow* row = FindOp(node.op);
  const auto is_expression = [&](ValueId input) {
    return input != kNone && IsParameter(graph, input);
  };
  const auto is_folded = [&](ValueId input) {
    return input != kNone && static_cast<size_t>(input) < folded.size() && folded[input];
  };
  if (row == nullptr) return false;
  const bool of_shape = row->Has(kShapeOnly) && absl::c_any_of(node.inputs, is_expression);
  if (!of_shape && !absl::c_any_of(node.inputs, is_folded)) return false;
  const std::vector<ValueId> outputs = node.outputs;
  const absl::StatusOr<bool> result = FoldNode(graph, id, kMaxShapeBytes);
  if (!result.ok() && HasBranches(graph)) return false;
  RETURN_IF_ERROR(result.status());
  for (ValueId output : outputs) {
    if (*result && output != kNone) folded[output] = true;
  }
  return *result;
}

// Returns the bytes of the result of `node`, over parameters and constants, where it has more
// elements than they: a small weight may be repeated to gigabytes. Weights of few bits that become
// numbers, which our own ops do, have several elements a byte.
int64_t BytesGrown(const Graph& graph, const Node& node) {
  double elements = 0;
  for (const ValueId input : node.inputs) {
    if (input == kNone) continue;
    elements += static_cast<double>(NumElements(*graph.value(input).shape));
  }
  const Value& result = graph.value(node.outputs[0]);
  const int64_t made = NumElements(*result.shape);
  const auto bytes = static_cast<int64_t>(DTypeSize(result.dtype));
  const bool unpacks = FindOp(node.op)->Has(kInternal);
  return unpacks || static_cast<double>(made) <= 2 * elements ? 0 : made * bytes;
}

absl::StatusOr<bool> PrepareParametersIn(Graph& graph) {
  bool changed = false;
  const bool branches = HasBranches(graph);
  std::vector<bool> folded(graph.num_values(), false);
  int64_t left = FoldAllowance::kTotal;
  for (NodeId id : graph.NodeIds()) {
    if (graph.node(id).removed) continue;
    ASSIGN_OR_RETURN(const bool constant, FoldShapes(graph, id, folded));
    changed |= constant;
    if (constant || !DependsOnParametersAlone(graph, graph.node(id))) continue;
    const absl::Status inferred = InferNode(graph, id);
    // Parameters' elements are never read, so a shape that depends on them stays unknown.
    if (inferred.code() == absl::StatusCode::kFailedPrecondition) continue;
    if (!inferred.ok() && branches) continue;
    RETURN_IF_ERROR(inferred);
    const Node& node = graph.node(id);
    const int64_t grown = BytesGrown(graph, node);
    if (grown > left) continue;  // Each request computes it, within its limits.
    left -= grown;
    std::vector<ParameterExprPtr> inputs;
    for (ValueId input : node.inputs) {
      if (input == kNone) {
        inputs.push_back(nullptr);
      } else if (IsParameter(graph, input)) {
        inputs.push_back(graph.value(input).parameter);
      } else {
        inputs.push_back(ParameterExpr::Constant(graph.value(input).constant));
      }
    }
    const ValueId output = node.outputs[0];
    const Value& value = graph.value(output);
    ParameterExprPtr expr = ParameterExpr::Apply(node.op, node.attributes, std::move(inputs),
                                                 value.dtype, *value.shape);
    graph.ReplaceWithParameter(output, std::move(expr));
    changed = true;
  }
  return changed;
}

}  // namespace

std::unique_ptr<Pass> PrepareParameters() {
  return PassOf("prepare_parameters", PrepareParametersIn);
}

}  // namespace reprise

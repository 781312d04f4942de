#include "runtime/passes/specialize/examine.h"

#include <algorithm>

#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/kit/fold.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

// Shape arithmetic is small; nothing else is worth folding here.
constexpr int64_t kMaxFoldedBytes = 1 << 20;

bool IsKnown(const Value& value) {
  return value.dtype != DType::kUndefined && value.shape.has_value();
}

void SetShape(Value& value, const std::vector<Dim>& dims,
              const std::map<std::string, int64_t>& axes) {
  Shape shape;
  for (const Dim& dim : dims) {
    const auto size = DimSize(dim, axes);
    if (!size.ok()) return;
    shape.push_back(*size);
  }
  value.shape = std::move(shape);
}

}  // namespace

std::vector<NodeRefusal> Examine(Graph& graph, const std::map<std::string, int64_t>& axes,
                                 const DeclaredType& declared) {
  const auto declare = [&](ValueId id) {
    Value& value = graph.value(id);
    std::vector<Dim> dims;
    DType dtype = DType::kUndefined;
    if (IsKnown(value) || !declared(value.name, dtype, dims)) return;
    value.dtype = dtype;
    SetShape(value, dims, axes);
  };
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    graph.value(id).overridable = false;
  }
  for (const ValueId id : graph.inputs()) {
    Value& value = graph.value(id);
    if (value.dtype == DType::kUndefined) {
      declare(id);
    } else {
      SetShape(value, value.dims, axes);
    }
  }
  std::vector<NodeRefusal> refusals;
  for (const NodeId id : graph.NodeIds()) {
    if (graph.node(id).removed) continue;
    const std::vector<ValueId> inputs = graph.node(id).inputs;
    const std::vector<ValueId> outputs = graph.node(id).outputs;
    const bool known = std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
      return input == kNone || IsKnown(graph.value(input));
    });
    absl::Status status;
    if (known) {
      const auto folded = FoldNode(graph, id, kMaxFoldedBytes);
      status = !folded.ok() ? folded.status() : *folded ? absl::OkStatus() : InferNode(graph, id);
      if (!status.ok()) refusals.push_back({id, status});
    }
    if (known && status.ok()) continue;
    for (const ValueId output : outputs) {
      if (output != kNone) declare(output);
    }
  }
  return refusals;
}

}  // namespace reprise

#include "runtime/passes/specialize/specialize.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/kit/branches.h"
#include "runtime/passes/kit/fold.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

absl::Status CheckSize(const Value& value, absl::string_view owner, int64_t limit) {
  const auto elements = CheckedNumElements(*value.shape);
  const int64_t element_bytes = static_cast<int64_t>(DTypeSize(value.dtype));
  if (!elements.ok()) {
    return absl::Status(elements.status().code(), absl::StrCat(owner, ": value '", value.name,
                                                               "': ", elements.status().message()));
  }
  if (*elements <= limit / element_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      owner, ": value '", value.name, "' ", DTypeName(value.dtype), ShapeToString(*value.shape),
      " needs ",
      *elements <= INT64_MAX / element_bytes ? absl::StrCat(*elements * element_bytes, " bytes")
                                             : std::string("more than 2^63 bytes"),
      ", the limit is ", limit));
}

absl::StatusOr<Shape> InputShape(const Value& input, const std::map<std::string, int64_t>& axes) {
  Shape shape;
  for (const Dim& dim : input.dims) {
    const auto size = DimSize(dim, axes);
    if (!size.ok()) {
      return absl::Status(size.status().code(),
                          absl::StrCat("input '", input.name, "': ", size.status().message()));
    }
    shape.push_back(*size);
  }
  return shape;
}

absl::Status CheckShapeInput(const Value& declared, const Tensor& value) {
  if (value.dtype() == declared.dtype && value.shape() == *declared.shape) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("shape input '", declared.name, "' ", DTypeName(declared.dtype),
                   ShapeToString(*declared.shape), ": the binding has ", DTypeName(value.dtype()),
                   ShapeToString(value.shape())));
}

absl::Status BindInputs(Graph& graph, const Binding& binding, const SpecializeOptions& options) {
  const std::vector<ValueId> inputs = graph.inputs();
  for (ValueId id : inputs) {
    Value& value = graph.value(id);
    ASSIGN_OR_RETURN(value.shape, InputShape(value, binding.axes));
    RETURN_IF_ERROR(CheckSize(value, "input", options.max_value_bytes));
    for (size_t i = 0; i < value.dims.size(); ++i) value.dims[i] = {.size = (*value.shape)[i]};
  }
  for (const auto& [name, tensor] : binding.shape_inputs) {
    const ValueId id = graph.FindValue(name);
    if (id == kNone || !graph.value(id).shape.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the binding's shape input '", name, "' is not an input of the model"));
    }
    RETURN_IF_ERROR(CheckShapeInput(graph.value(id), tensor));
    graph.ReplaceWithConstant(id, tensor);
  }
  return absl::OkStatus();
}

// Walks the nodes. Only the branch of an If that is taken is walked, since the other may not fit at
// this binding: with such nodes around, a node is walked when a result needs it.
class Walk {
 public:
  Walk(Graph& graph, const SpecializeOptions& options)
      : graph_(graph), options_(options), allowance_(graph, options.max_folded_bytes) {}

  absl::Status Run() {
    if (HasBranches(graph_)) {
      listed_.assign(graph_.num_nodes(), false);
      return WalkBehind(graph_.outputs(), 0);
    }
    for (NodeId id : graph_.NodeIds()) {
      if (!graph_.node(id).removed) RETURN_IF_ERROR(Visit(id));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int kMaxDepth = 1000;  // how deep branches may need branches

  absl::Status Visit(NodeId id) {
    ASSIGN_OR_RETURN(const bool folded, allowance_.Fold(graph_, id));
    if (folded) return absl::OkStatus();
    RETURN_IF_ERROR(InferNode(graph_, id));
    for (ValueId output : graph_.node(id).outputs) {
      if (output == kNone) continue;
      RETURN_IF_ERROR(
          CheckSize(graph_.value(output), NodeLabel(graph_.node(id)), options_.max_value_bytes));
    }
    return absl::OkStatus();
  }

  absl::Status VisitIf(NodeId id, int depth) {
    const Tensor* known = KnownCondition(graph_, id);
    if (known == nullptr) {
      const std::string label = NodeLabel(graph_.node(id));
      return graph_.ConstantOf(graph_.node(id).input(0)) == nullptr
                 ? absl::FailedPreconditionError(
                       absl::StrCat(label, ": its condition depends on data"))
                 : absl::InvalidArgumentError(
                       absl::StrCat(label, ": its condition is not one bool"));
    }
    ASSIGN_OR_RETURN(const std::vector<int64_t> elements, known->ToInt64s());
    const bool condition = elements[0] != 0;
    RETURN_IF_ERROR(WalkBehind(BranchTaken(graph_, id, condition), depth + 1));
    TakeBranch(graph_, id, condition);
    return absl::OkStatus();
  }

  // Walks the nodes that `values` need and that were not walked yet, in the order of the graph.
  absl::Status WalkBehind(const std::vector<ValueId>& values, int depth) {
    if (depth > kMaxDepth) return absl::InvalidArgumentError("If nodes nest too deeply");
    std::vector<NodeId> nodes;
    std::vector<ValueId> stack = values;
    while (!stack.empty()) {
      const NodeId id = stack.back() == kNone ? kNone : graph_.value(stack.back()).producer;
      stack.pop_back();
      if (id == kNone || listed_[id]) continue;
      listed_[id] = true;
      nodes.push_back(id);
      const std::vector<ValueId>& inputs = graph_.node(id).inputs;
      if (graph_.node(id).op == IfOp::kName) {
        stack.push_back(inputs[0]);
      } else {
        stack.insert(stack.end(), inputs.begin(), inputs.end());
      }
    }
    std::sort(nodes.begin(), nodes.end());
    for (const NodeId id : nodes) {
      if (graph_.node(id).removed) continue;
      RETURN_IF_ERROR(graph_.node(id).op == IfOp::kName ? VisitIf(id, depth) : Visit(id));
    }
    return absl::OkStatus();
  }

  Graph& graph_;
  const SpecializeOptions& options_;
  FoldAllowance allowance_;
  std::vector<bool> listed_;  // which nodes are walked, or about to be
};

void Trace(const Graph& symbolic, const Graph& walked, SpecializeTrace& trace) {
  const size_t count = symbolic.num_values();
  trace.constants.assign(count, std::nullopt);
  trace.shapes.assign(count, std::nullopt);
  for (ValueId id = 0; id < static_cast<ValueId>(count); ++id) {
    const Value& value = walked.value(id);
    if (value.kind == Value::Kind::kConstant) trace.constants[id] = value.constant;
    trace.shapes[id] = value.shape;
  }
}

}  // namespace

std::string ElementsText(const Tensor& value) {
  const auto integers = value.ToInt64s();
  if (integers.ok()) return absl::StrJoin(*integers, ",");
  return absl::StrJoin(value.ToDoubles(), ",",
                       [](std::string* out, double element) { AppendText(out, "%.17g", element); });
}

std::string Binding::ToString() const {
  std::vector<std::string> parts;
  for (const auto& [axis, size] : axes) parts.push_back(absl::StrCat(axis, "=", size));
  for (const auto& [name, values] : shape_inputs) {
    parts.push_back(absl::StrCat(name, "=[", ElementsText(values), "]"));
  }
  return absl::StrJoin(parts, ",");
}

absl::StatusOr<Graph> Specialize(const Graph& symbolic, const Binding& binding,
                                 const SpecializeOptions& options) {
  Graph graph = symbolic;
  RETURN_IF_ERROR(BindInputs(graph, binding, options));
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    graph.value(id).overridable = false;  // An overridden value became an input before.
  }
  RETURN_IF_ERROR(Walk(graph, options).Run());
  if (options.trace != nullptr) Trace(symbolic, graph, *options.trace);
  if (!graph.Compact()) return absl::InternalError("specialize: the graph has a cycle");
  return graph;
}

}  // namespace reprise

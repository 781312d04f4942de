#include "runtime/graph/verifier.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"

namespace reprise {
namespace {

std::string Label(const Graph& graph, NodeId id) {
  return absl::StrCat("node ", id, " (", NodeLabel(graph.node(id)), ")");
}

template <typename... Parts>
absl::Status Broken(const Parts&... parts) {
  return absl::InternalError(absl::StrCat("graph: ", parts...));
}

bool IsLive(const Graph& graph, ValueId id) {
  return id >= 0 && id < static_cast<ValueId>(graph.num_values()) &&
         graph.value(id).kind != Value::Kind::kRemoved;
}

absl::Status VerifyNode(const Graph& graph, NodeId id, std::vector<int>& uses) {
  const Node& node = graph.node(id);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (input == kNone) continue;
    if (!IsLive(graph, input)) {
      return Broken(Label(graph, id), " reads value ", input, " as input ", i,
                    ", which is not defined");
    }
    ++uses[input];
    const Value& value = graph.value(input);
    if (value.producer >= id) {
      return Broken(Label(graph, id), " reads '", value.name, "', which ",
                    Label(graph, value.producer), " defines later");
    }
    if (std::find(value.users.begin(), value.users.end(), id) == value.users.end()) {
      return Broken("'", value.name, "' does not list ", Label(graph, id), " as a user");
    }
  }
  for (ValueId output : node.outputs) {
    if (output == kNone) continue;
    if (!IsLive(graph, output) || graph.value(output).kind != Value::Kind::kResult ||
        graph.value(output).producer != id) {
      return Broken(Label(graph, id), " lists value ", output, " as its result, which it is not");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyDefinition(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  switch (value.kind) {
    case Value::Kind::kResult: {
      const bool defined = value.producer >= 0 &&
                           value.producer < static_cast<NodeId>(graph.num_nodes()) &&
                           !graph.node(value.producer).removed &&
                           std::count(graph.node(value.producer).outputs.begin(),
                                      graph.node(value.producer).outputs.end(), id) == 1;
      return defined ? absl::OkStatus() : Broken("result '", value.name, "' has no definition");
    }
    case Value::Kind::kInput:
      if (std::count(graph.inputs().begin(), graph.inputs().end(), id) != 1) {
        return Broken("input '", value.name, "' is not in the list of inputs once");
      }
      break;
    case Value::Kind::kParameter:
      if (value.parameter == nullptr) return Broken("parameter '", value.name, "' is empty");
      if (value.parameter->dtype() != value.dtype || value.shape != value.parameter->shape()) {
        return Broken("parameter '", value.name, "' has another type than its expression");
      }
      break;
    default:
      if (value.constant.dtype() != value.dtype || value.shape != value.constant.shape()) {
        return Broken("constant '", value.name, "' has another type than its tensor");
      }
  }
  return value.producer == kNone ? absl::OkStatus()
                                 : Broken("'", value.name, "' is not a result but has a producer");
}

}  // namespace

absl::Status Verify(const Graph& graph, bool specialized) {
  std::vector<int> uses(graph.num_values(), 0);
  for (NodeId id : graph.NodeIds()) RETURN_IF_ERROR(VerifyNode(graph, id, uses));
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const Value& value = graph.value(id);
    if (value.kind == Value::Kind::kRemoved) continue;
    RETURN_IF_ERROR(VerifyDefinition(graph, id));
    if (value.name.empty()) return Broken("value ", id, " has no name");
    if (graph.FindValue(value.name) != id) return Broken("two values are named '", value.name, "'");
    if (static_cast<size_t>(uses[id]) != value.users.size()) {
      return Broken("'", value.name, "' lists ", value.users.size(), " uses, but has ", uses[id]);
    }
    if (specialized && (value.dtype == DType::kUndefined || !value.shape.has_value())) {
      return Broken("'", value.name, "' has no ",
                    value.dtype == DType::kUndefined ? "dtype" : "constant shape",
                    " in a specialised graph");
    }
  }
  for (ValueId id : graph.inputs()) {
    if (!IsLive(graph, id) || graph.value(id).kind != Value::Kind::kInput) {
      return Broken("the list of inputs names value ", id, ", which is not an input");
    }
  }
  for (ValueId id : graph.outputs()) {
    if (!IsLive(graph, id)) return Broken("output value ", id, " is not defined");
  }
  return absl::OkStatus();
}

}  // namespace reprise

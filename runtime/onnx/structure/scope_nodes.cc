#include "runtime/onnx/structure/scope_nodes.h"

#include "runtime/onnx/structure/flatten.h"

namespace reprise {

bool IsOnnx(const onnx::NodeProto& node, const char* op) {
  return node.op_type() == op && CanonicalDomain(node.domain()).empty();
}

int64_t IntOf(const onnx::NodeProto& node, const char* name, int64_t fallback) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.i();
  }
  return fallback;
}

int UsesBy(const onnx::NodeProto& node, const std::string& name) {
  int uses = 0;
  for (const std::string& input : node.input()) uses += input == name ? 1 : 0;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) uses += UsesIn(attribute.g(), name);
  }
  return uses;
}

int UsesIn(const onnx::GraphProto& graph, const std::string& name) {
  for (const auto& input : graph.input()) {
    if (input.name() == name) return 0;
  }
  int uses = 0;
  for (const onnx::NodeProto& node : graph.node()) uses += UsesBy(node, name);
  for (const auto& output : graph.output()) uses += output.name() == name ? 1 : 0;
  return uses;
}

std::vector<std::string> ResultsOf(const onnx::GraphProto& graph) {
  std::vector<std::string> results;
  for (const auto& output : graph.output()) results.push_back(output.name());
  return results;
}

void SetInt(onnx::NodeProto& node, const char* name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

int64_t OnnxVersionIn(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& opsets) {
  for (const auto& opset : opsets) {
    if (CanonicalDomain(opset.domain()).empty()) return opset.version();
  }
  return 1;
}

}  // namespace reprise

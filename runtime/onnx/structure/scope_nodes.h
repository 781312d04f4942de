// Questions about the nodes of one graph of a file, before they are imported.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

bool IsOnnx(const onnx::NodeProto& node, const char* op);
// Returns attribute `name` of `node`, `fallback` where it is absent.
int64_t IntOf(const onnx::NodeProto& node, const char* name, int64_t fallback);
void SetInt(onnx::NodeProto& node, const char* name, int64_t value);

// Returns how often `name` is read in `graph` from around it. One of its own that is called so
// hides it.
int UsesIn(const onnx::GraphProto& graph, const std::string& name);
// Returns how often `node`, its subgraphs with it, reads `name`.
int UsesBy(const onnx::NodeProto& node, const std::string& name);

// Returns the names that leave `graph`.
std::vector<std::string> ResultsOf(const onnx::GraphProto& graph);
// Calls `visit(graph)` with each graph that an attribute of `node` is.
template <typename Visit>
void ForEachGraphOf(onnx::NodeProto& node, Visit visit) {
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) visit(*attribute.mutable_g());
  }
}

// Returns the version of ONNX's operators in a list of opsets.
int64_t OnnxVersionIn(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& opsets);

}  // namespace reprise

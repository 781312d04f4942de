// NodePlaces: where in the model's source the nodes of an ONNX file come from.
//
// The module of a node is the scope in its name ("/encoder/layer.0/MatMul" is in
// "encoder/layer.0"), or the exporter's remark: `metadata_props` of torch's newer exporter have
// scopes, classes and the stack of the line that made it, `doc_string` of its older one
// (`verbose=True`) a stack, and other exporters a line, "model.py:25".
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace reprise {

struct NodePlace {
  std::string module;  // "(model)" outside of all scopes
  std::string type;    // its class, "torch.nn.modules.linear.Linear"; empty: the file does not say
  std::string location;  // "model.py:25"; empty: the file does not say
};

class NodePlaces {
 public:
  // Places of a model whose file says nothing.
  NodePlaces() = default;
  // Reads the model file at `path`, without its weights. Errors: a file that is no ONNX model.
  static absl::StatusOr<NodePlaces> Read(const std::string& path);

  // `node`: the name of a node, also of one that the file does not have.
  NodePlace Of(const std::string& node) const;

 private:
  std::map<std::string, NodePlace> by_node_;
};

// Returns the scope in a name, "(model)" where there is none.
std::string ScopeOf(const std::string& node);

}  // namespace reprise

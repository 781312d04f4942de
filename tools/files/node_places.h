// NodePlaces: where in the model's source the nodes of an ONNX file come from.
//
// The module of a node is the scope in its name ("/encoder/layer.0/MatMul" is in
// "encoder/layer.0"), or what the exporter says of it in `metadata_props` (torch's newer one:
// scopes, and the stack of the line that made it).
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace reprise::cli {

struct NodePlace {
  std::string module;    // "(model)" outside of all scopes
  std::string location;  // "model.py:25"; empty: the file does not say
};

class NodePlaces {
 public:
  // Reads the model file at `path`. Errors: a file that is no model.
  static absl::StatusOr<NodePlaces> Read(const std::string& path);

  // `node`: the name of a node, also of one that the file does not have.
  NodePlace Of(const std::string& node) const;

 private:
  std::map<std::string, NodePlace> by_node_;
};

// The scope in a name, "(model)" where there is none.
std::string ScopeOf(const std::string& node);

}  // namespace reprise::cli

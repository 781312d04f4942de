// DiffSide: one side of `reprise diff`: a graph and the facts about it, from any
// source.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "runtime/graph/graph.h"

namespace reprise::cli {

struct DiffSide {
  std::string what;  // "model a.onnx", "recipe 0123456789abcdef of minilm, b1_s16"
  Graph graph;       // symbolic where it is known
  // Other facts by name, which are compared as texts: "opset", "binding", "precision", "device".
  // Those that make another recipe of the same graph come first.
  std::vector<std::pair<std::string, std::string>> facts;
  // The kernels of a recipe, by the nodes that they serve: "MatMul 'fc'".
  std::vector<std::pair<std::string, std::string>> kernels;
};

// Returns the side that `name` names: a model file, a record of a recipe store (.rps), a text of a
// graph as `reprise graph`, `reprise dump --graph` and `--dump-graphs` write it, BUNDLE#KEY, or the
// key of a recipe: one of the folder `store`, or where that is empty of the server. Errors name it.
absl::StatusOr<DiffSide> ReadDiffSide(const std::string& name, const std::string& store,
                                      const ServerFlags& server);

}  // namespace reprise::cli

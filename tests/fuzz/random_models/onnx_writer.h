// A graph as the bytes of an ONNX model, so that a drawn model is loaded as any other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace reprise::fuzz {

// `graph`: of ops that a model file may name, If and Loop in the flat form of the importer. Nodes
// that only a branch of an If or the body of a Loop needs lie within it. `declared`: dims of
// outputs, by name, where the file says them.
std::string OnnxBytes(const Graph& graph,
                      const std::map<std::string, std::vector<Dim>>& declared = {});

}  // namespace reprise::fuzz

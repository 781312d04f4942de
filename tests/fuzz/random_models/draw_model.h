// A random model with random requests, all of it from one seed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/model_draft.h"

namespace reprise::fuzz {

// A model, requests by their sizes, and how the model is loaded: all that a run needs, and the unit
// that is shrunk.
struct TestCase {
  Graph graph;
  std::vector<Sizes> requests;  // one size for every symbol
  uint64_t contents = 1;        // seed of requests' contents
  bool packed = false;          // where the model can be
  bool wild = false;            // some requests hold infinities, NaN and huge numbers
  std::map<std::string, std::vector<Dim>> declared;  // dims of outputs, where the model says them
};

TestCase DrawCase(uint64_t seed);
TestCase DrawCase(Chance& chance);

// Requests for `graph`, of random sizes: small ones, those around numbers that the model holds, and
// large ones. `axes`: the symbols of each axis.
std::vector<Sizes> DrawRequests(const Graph& graph,
                                const std::vector<std::vector<std::string>>& axes, Chance& chance);

}  // namespace reprise::fuzz

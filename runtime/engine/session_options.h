// SessionOptions: how a session is bound. See session.h.
#pragma once

#include <map>
#include <string>

#include "runtime/graph/tensor.h"

namespace reprise {

struct SessionOptions {
  // The values of inputs whose elements decide shapes, by name. They are part of the recipe: their
  // places in the session hold them, and writing others there changes nothing.
  std::map<std::string, Tensor> shape_inputs;
  int max_threads = 0;  // the threads of a replay, at most; 0: all cores of the engine
  // The memory of outputs and of intermediate results goes back to the system after each replay.
  // Each output must have been given a place then (Session::PlaceOutput), which keeps its values.
  bool release_outputs = false;
};

}  // namespace reprise

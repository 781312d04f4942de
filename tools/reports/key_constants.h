// The constants of a model that are part of the keys of its recipes: those whose values passes may
// read.
#pragma once

#include <string>
#include <vector>

#include "runtime/engine/model/model.h"
#include "runtime/graph/tensor.h"

namespace reprise::cli {

struct KeyConstant {
  std::string name;
  Tensor value;
  std::string
      reader;  // the node that reads it: "Clip 'clip'"; the first of several, and their number

  // Returns a few elements, or how many there are.
  std::string ValueText() const;
};

// In the order of the graph. Those in front of the cuts of a model that is cut.
std::vector<KeyConstant> KeyConstants(const Model& model);

}  // namespace reprise::cli

// ModelIo: an input or output of a model, as its file declares it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/graph/dtype.h"
#include "runtime/graph/shape.h"

namespace reprise {

struct ModelIo {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<Dim> dims;  // outputs: as declared, informative only
  bool text = false;      // elements are places in the model's vocabulary, as int64
  bool optional = false;  // an initialiser listed as input: a request may leave it out
  // The parameter that has its value where a request leaves it out (see engine/load/promotion.h);
  // -1 where it has none.
  int parameter = -1;

  // Requests that send it are served by a variant of the model.
  bool has_variants() const { return optional && parameter < 0; }
};

// Ranks of inputs whose shape the file leaves open, by name.
using InputRanks = std::map<std::string, int64_t>;

}  // namespace reprise

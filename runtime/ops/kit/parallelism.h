// Parallelism: how several processes (ranks) compute one model together.
#pragma once

#include "absl/strings/string_view.h"

namespace reprise {

enum class Parallelism {
  kTensor,    // each rank has a part of every layer
  kPipeline,  // each rank has some of the layers, all of each
};

inline absl::string_view ParallelismName(Parallelism parallelism) {
  return parallelism == Parallelism::kPipeline ? "pipeline" : "tensor";
}

}  // namespace reprise

// ToldOutputs: which outputs a probe can tell anything by.
//
// An output that is the same whatever is drawn, or never a number, would not have shown what
// padding or another row did to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/certify/probe.h"
#include "runtime/graph/tensor.h"

namespace reprise {

class ToldOutputs {
 public:
  // Notes the answers of an unpadded run. `tolerance`: as that of Differ.
  void Note(absl::Span<const Tensor> outputs, double tolerance);

  // Why nothing could be compared: the first output of floats that told no two runs of one shape
  // apart. Fixed outputs count as told, and so do those that are no answers.
  std::optional<std::string> FirstUntold(absl::Span<const std::string> names,
                                         const ProbeOptions& options) const;

 private:
  struct Output {
    std::vector<Tensor> firsts;  // the first answer with a number in it, by shape
    bool told = false;           // another one of its shape differed
  };
  std::vector<Output> outputs_;
};

}  // namespace reprise

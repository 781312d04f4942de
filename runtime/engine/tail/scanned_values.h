// ScannedValues: the results of each iteration of a loop, until they are put together.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/tensor.h"
#include "runtime/passes/cut/cut_graph.h"

namespace reprise {

class ScannedValues {
 public:
  // `label`: of the loop, for messages. Borrows both.
  ScannedValues(const std::string& label, const LoopBody::Scanned& declared)
      : label_(label), declared_(declared) {}

  // Returns INVALID_ARGUMENT where dtype or shape differs from the iterations before;
  // RESOURCE_EXHAUSTED beyond `max_bytes` in all.
  absl::Status Add(Tensor value, int64_t max_bytes);

  // Returns all of them, one after the other along a dim of its own. Without iterations, a tensor
  // as the file declares it, with 0 for sizes that it leaves open.
  absl::StatusOr<Tensor> Join() const;
  // Returns the bytes of all elements.
  int64_t bytes() const { return bytes_; }

 private:
  const std::string& label_;
  const LoopBody::Scanned& declared_;
  std::vector<Tensor> values_;
  int64_t bytes_ = 0;
};

}  // namespace reprise

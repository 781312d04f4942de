// ParameterStore: the parameters of one model version, as its recipes want them.
//
// Runs the prepare program: each distinct parameter expression is evaluated once, when the first
// recipe asks for it, and kept while the model is loaded.
//
// Threads: any. A second asker of an expression under evaluation waits for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "runtime/device/device.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/graph/tensor.h"

namespace reprise {

class ParameterStore {
 public:
  // `parameters` by leaf index; `device` runs the steps and outlives the store.
  ParameterStore(std::vector<Tensor> parameters, const Device* device)
      : leaves_(std::move(parameters)), device_(device) {}

  // The tensor of each expression, in order. Errors: what a step returns.
  absl::StatusOr<std::vector<Tensor>> Prepare(const std::vector<ParameterExprPtr>& expressions);

  int64_t leaf_bytes() const;
  int64_t prepared_bytes() const;

 private:
  absl::StatusOr<Tensor> Evaluate(const ParameterExpr& expression) REQUIRES(mutex_);

  // Constant after construction.
  const std::vector<Tensor> leaves_;
  const Device* const device_;
  // Guarded.
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, Tensor> prepared_ GUARDED_BY(mutex_);
};

}  // namespace reprise

// OpStream: the stream that ops are recorded on, and how they run.
//
//   OpStream stream(engine, {.mode = Mode::kLazy});
//   Tensor x = stream.FromVector<float>({1, 4}, {1, 2, 3, 4});
//   Tensor w = stream.Parameter(weights);       // constant: packed for its kernels once
//   Tensor y = Relu(MatMul(x, w) + 1);
//   RETURN_IF_ERROR(stream.MarkStep());         // y, and all else that is alive, is computed
//
// kEager  each op is computed when it is called, on a cached recipe of its own.
// kLazy   ops accumulate until a value is asked for, or MarkStep(): then the ops that the
//         living tensors need are one graph. It is
//         captured the first time, and replayed whenever it comes again.
// kGraph  as kLazy, and a Function (function.h) is captured whole, once for its shapes.
//
// Lazy and graph give the same bits for the same ops. Eager agrees within the bound of exact
// answers, 1e-4 + 1e-4 of the value, since graphs join ops; with `fusion` false nothing is joined,
// each op has one kernel in all modes, and all three give the same bits.
//
// Ownership: borrows the engine, which outlives the stream.
// Threads:   one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/engine/engine.h"
#include "runtime/lazy/tensor.h"

namespace reprise::lazy {

enum class Mode { kEager, kLazy, kGraph };

struct OpStreamOptions {
  Mode mode = Mode::kLazy;
  bool fusion = true;  // see ModelOptions
  Precision precision = Precision::kExact;
  PrecisionRules precision_ops;
  int64_t max_programs = 1024;     // graphs that are kept, the least recently used go first
  int64_t max_pending_ops = 4096;  // more than these are computed without a MarkStep()
  // Called at the line of an op, or of a read, that fails: to throw, to abort, or to log.
  std::function<void(const absl::Status&)> on_error;
};

// Counts of a stream's work so far.
struct OpStreamStats {
  int64_t ops = 0;        // ops that were called
  int64_t captures = 0;   // graphs that were new
  int64_t replays = 0;    // graphs that ran
  int64_t evictions = 0;  // graphs that were evicted for want of room
};

class StreamState;  // trace.h

class OpStream {
 public:
  explicit OpStream(Engine& engine, OpStreamOptions options = {});
  ~OpStream();
  OpStream(const OpStream&) = delete;
  OpStream& operator=(const OpStream&) = delete;

  // Returns a tensor of the program's, copied. `values` has as many elements as `shape`.
  template <typename T>
  Tensor FromVector(const Shape& shape, const std::vector<T>& values) {
    return FromBytes(kElementDType<T>, shape, values.data(), values.size() * sizeof(T));
  }
  Tensor FromBytes(DType dtype, const Shape& shape, const void* data, size_t bytes);
  // Returns zeros.
  Tensor Zeros(DType dtype, const Shape& shape);
  // Returns a tensor whose elements never change, such as a model's weights: kernels get it in the
  // form that they want, made once. It is no input of captured graphs.
  Tensor Parameter(reprise::Tensor value);
  template <typename T>
  Tensor Parameter(const Shape& shape, const std::vector<T>& values) {
    return Parameter(reprise::Tensor::FromVector<T>(kElementDType<T>, shape, values));
  }

  // Computes all that was recorded and is still wanted. Returns the first error.
  absl::Status MarkStep();
  // Returns the first error since the last call, which is forgotten then.
  absl::Status TakeError();

  Mode mode() const;
  OpStreamStats stats() const;
  const std::shared_ptr<StreamState>& state() const { return state_; }

 private:
  const std::shared_ptr<StreamState> state_;
};

}  // namespace reprise::lazy

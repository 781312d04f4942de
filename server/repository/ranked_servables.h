// RankedServables: a model whose file leaves the ranks of some inputs open, once for each rank.
//
// A model is specialised to the rank of a request too: at each choice of ranks it has axes,
// certificates, buckets and a queue of its own. The first request of a choice waits until it is
// loaded; at most kMost choices are, so that clients cannot make a server load without end.
//
// Ownership: owns its servables, and the threads that load. Threads: all methods from any.
// Errors: RESOURCE_EXHAUSTED naming inputs and ranks beyond kMost; errors of the load of a choice,
//         which are remembered.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "runtime/onnx/model_io.h"

namespace reprise {

struct Servable;

class RankedServables {
 public:
  static constexpr size_t kMost = 4;
  // ONNX has no tensors of more dims that anybody sends; a load for each is not worth a try.
  static constexpr int64_t kHighestRank = 8;

  using Load = std::function<absl::StatusOr<std::shared_ptr<const Servable>>(const InputRanks&)>;

  // `inputs`: the names of those whose rank a request decides.
  RankedServables(std::vector<std::string> inputs, Load load);
  // Waits until running loads end.
  ~RankedServables();

  const std::vector<std::string>& inputs() const { return inputs_; }

  // Takes one that was loaded before anybody asked. It is no choice of a client's, and does not
  // count.
  void Add(const InputRanks& ranks, std::shared_ptr<const Servable> servable);

  // Returns the servable for requests of these ranks, which name all of inputs(). Null while it
  // is being loaded, which the call begins where need be: the function that `wait` gives is
  // called once then, on the thread that loads.
  absl::StatusOr<std::shared_ptr<const Servable>> Find(
      const InputRanks& ranks, absl::FunctionRef<std::function<void()>()> wait);

  // Returns the servables that are there.
  std::vector<std::shared_ptr<const Servable>> Loaded() const;

 private:
  struct Entry {
    bool loading = true;
    bool asked = false;  // a request has these ranks
    absl::StatusOr<std::shared_ptr<const Servable>> servable = absl::UnknownError("");
    std::vector<std::function<void()>> waiting;
  };
  // Refusals that are remembered; a client that sends ever other ranks makes loads of no more.
  static constexpr size_t kMostRefused = 64;

  absl::Status CheckRoom(const InputRanks& ranks) const REQUIRES(mutex_);
  void LoadOne(const InputRanks& ranks);

  // Constant after construction.
  const std::vector<std::string> inputs_;
  const Load load_;
  // Guarded.
  mutable Mutex mutex_;
  std::map<InputRanks, Entry> entries_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
};

// "rank 3 of input \"x\"", of several inputs joined.
std::string RanksText(const InputRanks& ranks);

}  // namespace reprise

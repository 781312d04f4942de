// Dispatcher: the leader threads, one a stream. Each takes a batch, executes it, and takes the
// next.
#pragma once

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/batching/scheduler.h"

namespace reprise {

template <typename Item>
class Dispatcher {
 public:
  // Runs on the leader thread of `stream`; must answer every item of the batch.
  using Execute = std::function<void(int stream, typename Scheduler<Item>::Batch& batch)>;

  // Starts the threads; throws std::system_error, and shuts the scheduler down, where the system
  // has none. `scheduler` must outlive the dispatcher.
  Dispatcher(Scheduler<Item>& scheduler, int streams, Execute execute)
      : scheduler_(scheduler), execute_(std::move(execute)) {
    try {
      for (int stream = 0; stream < streams; ++stream) {
        threads_.emplace_back([this, stream] { Lead(stream); });
      }
      threads_.emplace_back([this] { scheduler_.ExpireUntilShutdown(); });
    } catch (...) {
      scheduler_.Shutdown(absl::UnavailableError("the streams have no threads"));
      Join();
      throw;
    }
  }
  // The scheduler must have been shut down; waits for the batches that run.
  ~Dispatcher() { Join(); }
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

 private:
  void Lead(int stream) {
    while (auto batch = scheduler_.Take(stream)) {
      execute_(stream, *batch);
      scheduler_.Finish(*batch);
    }
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
  }

  Scheduler<Item>& scheduler_;
  const Execute execute_;
  std::vector<std::thread> threads_;  // the leaders, and the one that drops expired requests
};

}  // namespace reprise

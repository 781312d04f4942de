// Dispatcher: the leader threads, one a stream. Each takes a batch, executes it, and takes the
// next.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "server/batching/scheduler.h"

namespace reprise {

class Dispatcher {
 public:
  // Runs on the leader thread of `stream`; must answer every item of the batch.
  using Execute = std::function<void(int stream, Scheduler::Batch& batch)>;

  // Starts the threads; throws std::system_error, and shuts the scheduler down, where the system
  // has none. `scheduler` must outlive the dispatcher.
  Dispatcher(Scheduler& scheduler, int streams, Execute execute);
  // The scheduler must have been shut down; waits for the batches that run.
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

 private:
  Scheduler& scheduler_;
  const Execute execute_;
  std::vector<std::thread> threads_;  // the leaders, and the one that drops expired requests
};

}  // namespace reprise

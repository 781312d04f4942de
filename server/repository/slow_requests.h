// SlowRequests: the slowest requests of a model version in the last minutes, and where their time
// went.
//
// Threads: all methods from any. A request that is not among the slowest costs two loads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "server/repository/events.h"

namespace reprise {

struct SlowRequest {
  std::string id;       // the client's
  std::string bucket;   // its replay's
  std::string capture;  // "replayed", "waited"
  int64_t rows = 0;
  int64_t total_ns = 0;
  std::chrono::system_clock::time_point time;  // its answer's
  // Every stage that took time, in their order: "tokenizer", "queue", "capture", "replay" ...
  std::vector<std::pair<std::string, int64_t>> stages;

  // Returns the stage that took longest.
  const std::string& slow_stage() const;
};

class SlowRequests {
 public:
  static constexpr size_t kKept = 8;
  static constexpr std::chrono::minutes kWindow{10};

  // `record` is of a request that was answered; `total_ns` its whole time, tokenizer included.
  void Record(const RequestRecord& record, int64_t total_ns,
              std::chrono::system_clock::time_point now) EXCLUDES(mutex_);
  // Returns the requests of the last minutes, the slowest first.
  std::vector<SlowRequest> List(std::chrono::system_clock::time_point now) const EXCLUDES(mutex_);

 private:
  // The least time that a request must have taken to be kept, until the first of those leaves.
  std::atomic<int64_t> least_ns_{0};
  std::atomic<std::chrono::system_clock::rep> until_{0};
  mutable Mutex mutex_;
  std::vector<SlowRequest> slowest_ GUARDED_BY(mutex_);  // descending
};

}  // namespace reprise

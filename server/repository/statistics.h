// Statistics of one model version that ModelStatistics reports.
#pragma once

#include <cstdint>
#include <map>

#include "runtime/base/mutex.h"

namespace reprise {

struct DurationSum {
  uint64_t count = 0;
  uint64_t ns = 0;

  void Add(int64_t duration_ns) {
    ++count;
    ns += duration_ns > 0 ? static_cast<uint64_t>(duration_ns) : 0;
  }
};

// Where the time of a request or of a batch went, in nanoseconds.
struct PhaseTimes {
  int64_t tokenizer_ns = 0;  // texts became tokens
  int64_t queue_ns = 0;
  int64_t compute_input_ns = 0;   // gather
  int64_t compute_infer_ns = 0;   // capture and replay
  int64_t compute_output_ns = 0;  // scatter
  int64_t taken_ns = 0;           // when its batch began, on the server's clock
};

struct PhaseSums {
  DurationSum compute_input;
  DurationSum compute_infer;
  DurationSum compute_output;
};

struct Statistics {
  uint64_t last_inference_ms = 0;  // Unix time; 0: never
  uint64_t inference_count = 0;    // rows
  uint64_t execution_count = 0;    // batches
  DurationSum success;
  DurationSum fail;
  DurationSum queue;
  // Requests whose recipe was ready, and requests that had to wait for one or ran without; their
  // time is the time of capture and replay.
  DurationSum recipe_hit;
  DurationSum recipe_miss;
  PhaseSums phases;
  std::map<int64_t, PhaseSums> batches;  // keyed by the rows of a batch
};

// Threads: all methods from any.
class StatisticsRecorder {
 public:
  void RecordSuccess(int64_t rows, int64_t total_ns, const PhaseTimes& times, bool recipe_hit)
      EXCLUDES(mutex_);
  void RecordFailure(int64_t total_ns) EXCLUDES(mutex_);
  void RecordBatch(int64_t rows, const PhaseTimes& times) EXCLUDES(mutex_);
  Statistics Snapshot() const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  Statistics sums_ GUARDED_BY(mutex_);
};

}  // namespace reprise

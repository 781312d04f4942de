#include "server/repository/statistics.h"

#include <chrono>

namespace reprise {
namespace {

void AddPhases(const PhaseTimes& times, PhaseSums& sums) {
  sums.compute_input.Add(times.compute_input_ns);
  sums.compute_infer.Add(times.compute_infer_ns);
  sums.compute_output.Add(times.compute_output_ns);
}

}  // namespace

void StatisticsRecorder::RecordSuccess(int64_t rows, int64_t total_ns, const PhaseTimes& times,
                                       bool recipe_hit) {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  MutexLock lock(mutex_);
  sums_.last_inference_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
  sums_.inference_count += rows;
  sums_.success.Add(total_ns);
  sums_.queue.Add(times.queue_ns);
  (recipe_hit ? sums_.recipe_hit : sums_.recipe_miss).Add(times.compute_infer_ns);
  AddPhases(times, sums_.phases);
}

void StatisticsRecorder::RecordFailure(int64_t total_ns) {
  MutexLock lock(mutex_);
  sums_.fail.Add(total_ns);
}

void StatisticsRecorder::RecordBatch(int64_t rows, const PhaseTimes& times) {
  MutexLock lock(mutex_);
  ++sums_.execution_count;
  AddPhases(times, sums_.batches[rows]);
}

Statistics StatisticsRecorder::Snapshot() const {
  MutexLock lock(mutex_);
  return sums_;
}

}  // namespace reprise

#include "server/protocol/statistics.h"

namespace reprise {
namespace {

void Encode(const DurationSum& sum, inference::StatisticDuration& message) {
  message.set_count(sum.count);
  message.set_ns(sum.ns);
}

}  // namespace

void EncodeStatistics(const ModelVersion& version, inference::ModelStatistics& message) {
  const Statistics statistics = version.statistics.Snapshot();
  message.set_name(version.name);
  message.set_version(version.version);
  message.set_last_inference(statistics.last_inference_ms);
  message.set_inference_count(statistics.inference_count);
  message.set_execution_count(statistics.execution_count);
  inference::InferStatistics& sums = *message.mutable_inference_stats();
  Encode(statistics.success, *sums.mutable_success());
  Encode(statistics.fail, *sums.mutable_fail());
  Encode(statistics.queue, *sums.mutable_queue());
  Encode(statistics.phases.compute_input, *sums.mutable_compute_input());
  Encode(statistics.phases.compute_infer, *sums.mutable_compute_infer());
  Encode(statistics.phases.compute_output, *sums.mutable_compute_output());
  Encode(statistics.recipe_hit, *sums.mutable_cache_hit());
  Encode(statistics.recipe_miss, *sums.mutable_cache_miss());
  for (const auto& [rows, phases] : statistics.batches) {
    inference::InferBatchStatistics& batch = *message.add_batch_stats();
    batch.set_batch_size(static_cast<uint64_t>(rows));
    Encode(phases.compute_input, *batch.mutable_compute_input());
    Encode(phases.compute_infer, *batch.mutable_compute_infer());
    Encode(phases.compute_output, *batch.mutable_compute_output());
  }
}

}  // namespace reprise

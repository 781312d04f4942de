#include "server/rpc/stats_codec.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <map>
#include <string>

#include "runtime/graph/graph.h"

namespace reprise {
namespace {

using prometheus::Counter;
using prometheus::Histogram;

uint64_t CountOf(const Counter& counter) { return static_cast<uint64_t>(counter.Value()); }
uint64_t CountOf(const prometheus::Gauge& gauge) { return static_cast<uint64_t>(gauge.Value()); }
double Sum(const Histogram& histogram) { return histogram.Collect().histogram.sample_sum; }

void EncodeBuckets(const ModelMetrics& metrics, v1::ModelStats& message) {
  std::map<std::string, const Histogram*> durations;
  metrics.replay_duration.ForEach(
      [&](const std::string& bucket, Histogram& histogram) { durations[bucket] = &histogram; });
  uint64_t replays = 0;
  metrics.replays.ForEach([&](const std::string& bucket, Counter& counter) {
    replays += CountOf(counter);
    v1::BucketStats& stats = *message.add_replays_by_bucket();
    stats.set_bucket(bucket);
    stats.set_replays(CountOf(counter));
    if (auto it = durations.find(bucket); it != durations.end()) {
      stats.set_compute_seconds(Sum(*it->second));
    }
  });
  message.set_replays(replays);
}

void EncodeAxes(const ModelMetrics& metrics, v1::ModelStats& message) {
  std::map<std::string, v1::AxisStats> axes;
  metrics.valid_elements.ForEach([&](const std::string& axis, Counter& counter) {
    axes[axis].set_valid_elements(CountOf(counter));
  });
  metrics.padded_elements.ForEach([&](const std::string& axis, Counter& counter) {
    axes[axis].set_padded_elements(CountOf(counter));
  });
  for (auto& [axis, stats] : axes) {
    stats.set_axis(axis);
    *message.add_axes() = std::move(stats);
  }
}

void EncodeCache(const ModelMetrics& metrics, v1::CacheStats& message) {
  message.set_recipes(CountOf(*metrics.cache_recipes));
  message.set_bytes(CountOf(*metrics.cache_bytes));
  message.set_hits(CountOf(*metrics.memory_hits));
  message.set_misses(CountOf(*metrics.memory_misses));
  metrics.evictions.ForEach([&](const std::string& reason, Counter& counter) {
    v1::ReasonCount& count = *message.add_evictions();
    count.set_reason(reason);
    count.set_count(CountOf(counter));
  });
}

}  // namespace

void EncodeModelStats(const Repository::Listed& listed, const ModelMetrics* counted,
                      v1::ModelStats& message) {
  message.set_model(listed.version->name);
  message.set_version(listed.version->version);
  message.set_state(ModelStateName(listed.state));
  if (counted == nullptr) return;
  const ModelMetrics& metrics = *counted;
  uint64_t requests = 0;
  metrics.requests.ForEach([&](const std::string& code, Counter& counter) {
    requests += CountOf(counter);
    v1::CodeCount& count = *message.add_requests_by_code();
    count.set_code(code);
    count.set_count(CountOf(counter));
  });
  message.set_requests(requests);
  message.set_rows(CountOf(*metrics.nv_inference_count));
  uint64_t compiles = 0;
  metrics.compiles.ForEach([&](const std::string& reason, Counter& counter) {
    compiles += CountOf(counter);
    v1::ReasonCount& count = *message.add_compiles_by_reason();
    count.set_reason(reason);
    count.set_count(CountOf(counter));
  });
  message.set_compiles(compiles);
  message.set_compile_seconds(Sum(*metrics.compile_duration));
  EncodeBuckets(metrics, message);
  EncodeAxes(metrics, message);
  EncodeCache(metrics, *message.mutable_cache());
  message.set_queue_depth(CountOf(*metrics.queue_depth));
  message.set_queue_seconds(Sum(*metrics.queue_duration));
  message.set_request_seconds(Sum(*metrics.request_duration));
  if (listed.servable != nullptr) {
    message.set_parameter_bytes(static_cast<uint64_t>(listed.servable->model->parameter_bytes()));
  }
}

void AddCacheStats(const v1::CacheStats& version, v1::CacheStats& total) {
  total.set_recipes(total.recipes() + version.recipes());
  total.set_bytes(total.bytes() + version.bytes());
  total.set_hits(total.hits() + version.hits());
  total.set_misses(total.misses() + version.misses());
  // The reasons are a closed set, so every version lists the same ones.
  while (total.evictions_size() < version.evictions_size()) total.add_evictions();
  for (int i = 0; i < version.evictions_size(); ++i) {
    v1::ReasonCount& sum = *total.mutable_evictions(i);
    sum.set_reason(version.evictions(i).reason());
    sum.set_count(sum.count() + version.evictions(i).count());
  }
}

}  // namespace reprise

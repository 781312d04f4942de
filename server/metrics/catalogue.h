// Catalogue: the counters behind /metrics. What can exist is in metric_table.cc; a series appears
// when its model is added, with the value 0, not when something first happens.
//
// Ownership: owns every series. A ModelMetrics lives as long as its Catalogue, also after its model
// is gone: counters never go back.
// Threads:   all methods are safe from any thread. Those of ModelMetrics are what requests call:
//            lock-free but for histograms, which hold a mutex of their own for a few nanoseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"
#include "runtime/recipe/store.h"
#include "server/metrics/metric_table.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
template <typename T>
class Family;
}  // namespace prometheus

namespace reprise {

using LabelValues = std::vector<std::pair<std::string, std::string>>;

// One label added to those of the model: a series for each value, looked up without allocation.
// Values that nobody announced are added when they first occur, up to `most_values`: buckets of
// many axes, and those that followed each other, would else add series for ever. What comes after
// shares the series of kOtherValue.
template <typename T>
class LabelledSeries {
 public:
  static constexpr size_t kMostValues = 512;
  static constexpr absl::string_view kOtherValue = "other";

  LabelledSeries(prometheus::Family<T>& family, LabelValues model_labels, std::string label,
                 size_t most_values = kMostValues);
  T& at(absl::string_view value) EXCLUDES(mutex_);
  // Calls `f(value, series)` for each, in the order of the values.
  template <typename F>
  void ForEach(F f) const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::map<std::string, T*> sorted(series_.begin(), series_.end());
    for (const auto& [value, series] : sorted) f(value, *series);
  }

 private:
  // Constant after construction.
  prometheus::Family<T>& family_;
  const LabelValues model_labels_;
  const std::string label_;
  const size_t most_values_;
  // Guarded.
  mutable Mutex mutex_;
  HashMap<std::string, T*> series_ GUARDED_BY(mutex_);
};

// What is known of a model when it is added: the series that exist from the first scrape.
struct KnownSeries {
  std::vector<std::string> buckets;  // "exact" is added
  std::vector<std::string> axes;
  std::vector<std::string> ops;        // that may fall back to a reference kernel
  std::vector<std::string> eager_ops;  // of nodes at which the model is cut
};

// What the replays of each bucket computed along one axis. A bucket appears with its first replay,
// `exact` at once.
struct AxisSeries {
  LabelledSeries<prometheus::Counter> valid;
  LabelledSeries<prometheus::Counter> padded;
  LabelledSeries<prometheus::Counter> wasted_seconds;
};

// The series of one version of a model.
struct ModelMetrics {
  LabelValues labels;
  prometheus::Counter* tunes;
  prometheus::Counter* probes;
  prometheus::Counter* memory_hits;
  prometheus::Counter* memory_misses;
  prometheus::Counter* store_hits;
  prometheus::Counter* store_misses;
  prometheus::Gauge* cache_recipes;
  prometheus::Gauge* cache_bytes;
  prometheus::Gauge* bucket_waste_expected;
  prometheus::Gauge* bucket_waste_actual;
  prometheus::Gauge* bucket_drift;
  prometheus::Gauge* bucket_saving;
  prometheus::Counter* bucket_changes;
  prometheus::Counter* captures_saved;
  prometheus::Counter* withheld_answers;
  prometheus::Counter* sections;
  prometheus::Counter* section_seconds;
  prometheus::Counter* eager_hits;
  prometheus::Counter* eager_misses;
  prometheus::Counter* eager_evictions;
  prometheus::Gauge* eager_ops;
  prometheus::Gauge* eager_bytes;
  prometheus::Gauge* queue_depth;
  prometheus::Gauge* ready;
  prometheus::Gauge* warmup_wanted;
  prometheus::Gauge* warmup_done;
  prometheus::Histogram* compile_duration;
  prometheus::Histogram* batch_size;
  prometheus::Histogram* queue_duration;
  prometheus::Histogram* request_duration;
  prometheus::Counter* nv_success;
  prometheus::Counter* nv_inference_count;
  prometheus::Counter* nv_exec_count;
  prometheus::Gauge* nv_pending;
  prometheus::Counter* nv_request_us;
  prometheus::Counter* nv_queue_us;
  prometheus::Counter* nv_compute_input_us;
  prometheus::Counter* nv_compute_infer_us;
  prometheus::Counter* nv_compute_output_us;
  std::unique_ptr<LabelledSeries<prometheus::Counter>> compiles;           // reason
  std::unique_ptr<LabelledSeries<prometheus::Counter>> evictions;          // reason
  std::unique_ptr<LabelledSeries<prometheus::Counter>> thrash;             // bucket
  std::unique_ptr<LabelledSeries<prometheus::Counter>> store_misses_by;    // reason
  std::unique_ptr<LabelledSeries<prometheus::Counter>> replays;            // bucket
  std::unique_ptr<LabelledSeries<prometheus::Histogram>> replay_duration;  // bucket
  std::unique_ptr<LabelledSeries<prometheus::Gauge>> axis_certified;       // axis
  std::unique_ptr<LabelledSeries<prometheus::Counter>> valid_elements;     // axis
  std::unique_ptr<LabelledSeries<prometheus::Counter>> padded_elements;    // axis
  std::unique_ptr<LabelledSeries<prometheus::Histogram>> request_length;   // axis
  std::unique_ptr<LabelledSeries<prometheus::Counter>> requests;           // code
  std::unique_ptr<LabelledSeries<prometheus::Counter>> nv_failure;         // reason
  std::unique_ptr<LabelledSeries<prometheus::Counter>> reference_kernels;  // op
  std::unique_ptr<LabelledSeries<prometheus::Counter>> eager_nodes;        // op
  std::unique_ptr<LabelledSeries<prometheus::Counter>> eager_seconds;      // op
};

// Memory of all models together, read at each scrape.
struct MemoryUse {
  int64_t arena_bytes = 0;
  int64_t parameter_bytes = 0;
};

// The labels of reprise_build_info.
struct BuildInfo {
  std::string version;
  std::string compiler;
  std::string isa;
  std::string cpu;
};

class Catalogue {
 public:
  explicit Catalogue(const BuildInfo& build);
  ~Catalogue();

  // Adds the series of a model version, or returns those that it has, with what is known now.
  ModelMetrics& Model(const std::string& model, const std::string& version) EXCLUDES(mutex_);
  // Creates the series that `known` names.
  void Announce(ModelMetrics& metrics, const KnownSeries& known);
  // The series of one of `num_axes` axes by bucket, the more buckets the fewer axes there are; of
  // the same axis always the same ones underneath.
  std::unique_ptr<AxisSeries> SeriesOf(const ModelMetrics& metrics, const std::string& axis,
                                       size_t num_axes) const;

  // Requests that name no model that exists: one set of series with empty labels, because names
  // from outside must not become label values.
  ModelMetrics& Unknown() { return *unknown_; }

  // Replaces what is known of padding along an axis.
  void SetVerdict(const ModelMetrics& metrics, const std::string& axis, absl::string_view verdict,
                  const std::string& mixing) EXCLUDES(mutex_);

  void SetServerReady(bool ready);

  // The recipe store that was asked for, null if it could not be opened. Once, before the first
  // scrape; the store outlives the catalogue's last scrape.
  void SetStore(const RecipeStore* store);

  // Asked at each scrape. Once, before the first one; what it uses outlives the last.
  void SetMemory(std::function<MemoryUse()> memory) { memory_ = std::move(memory); }
  void CountArenaRelease();

  // The text exposition format, version 0.0.4.
  std::string Scrape() const;

 private:
  std::unique_ptr<ModelMetrics> MakeModel(const std::string& model, const std::string& version);
  prometheus::Family<prometheus::Counter>& CounterFamily(MetricId id) const;
  prometheus::Family<prometheus::Gauge>& GaugeFamily(MetricId id) const;
  prometheus::Family<prometheus::Histogram>& HistogramFamily(MetricId id) const;

  // Constant after construction.
  std::unique_ptr<prometheus::Registry> registry_;
  std::vector<prometheus::Family<prometheus::Counter>*> counters_;  // by MetricId, else null
  std::vector<prometheus::Family<prometheus::Gauge>*> gauges_;
  std::vector<prometheus::Family<prometheus::Histogram>*> histograms_;
  std::unique_ptr<ModelMetrics> unknown_;
  prometheus::Gauge* server_ready_ = nullptr;
  prometheus::Gauge* arena_bytes_ = nullptr;
  prometheus::Gauge* parameter_bytes_ = nullptr;
  prometheus::Counter* arena_releases_ = nullptr;
  std::function<MemoryUse()> memory_ = [] { return MemoryUse(); };
  bool wants_store_ = false;
  const RecipeStore* store_ = nullptr;
  // Guarded.
  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<ModelMetrics>> models_
      GUARDED_BY(mutex_);
  std::map<LabelValues, prometheus::Gauge*> verdicts_ GUARDED_BY(mutex_);  // by model and axis
};

}  // namespace reprise

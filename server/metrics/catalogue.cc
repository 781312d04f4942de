#include "server/metrics/catalogue.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <sstream>
#include <type_traits>

#include "runtime/base/status_macros.h"
#include "runtime/engine/observer.h"
#include "server/metrics/process_metrics.h"
#include "server/metrics/store_metrics.h"

namespace reprise {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr size_t kFewestBucketsOfAxis = 16;

const MetricRow& Row(MetricId id) { return MetricTable()[static_cast<size_t>(id)]; }

// The row that declared a family, by its name: histograms take their bounds from it.
const MetricRow& RowNamed(absl::string_view name) {
  for (const MetricRow& row : MetricTable()) {
    if (row.name == name) return row;
  }
  REPRISE_CHECK(!"a family that no row declares");
  return MetricTable()[0];
}

template <typename T>
T& AddSeries(Family<T>& family, const LabelValues& labels) {
  const prometheus::Labels map(labels.begin(), labels.end());
  if constexpr (std::is_same_v<T, Histogram>) {
    return family.Add(map, RowNamed(family.GetName()).buckets);
  } else {
    return family.Add(map);
  }
}

}  // namespace

template <typename T>
LabelledSeries<T>::LabelledSeries(Family<T>& family, LabelValues model_labels, std::string label,
                                  size_t most_values)
    : family_(family),
      model_labels_(std::move(model_labels)),
      label_(std::move(label)),
      most_values_(most_values) {}

template <typename T>
T& LabelledSeries<T>::at(absl::string_view value) {
  MutexLock lock(mutex_);
  auto found = series_.find(value);
  if (found == series_.end() && series_.size() >= most_values_) {
    value = kOtherValue;
    found = series_.find(value);
  }
  if (found != series_.end()) return *found->second;
  LabelValues labels = model_labels_;
  labels.emplace_back(label_, std::string(value));
  T& series = AddSeries(family_, labels);
  series_.emplace(std::string(value), &series);
  return series;
}

template class LabelledSeries<Counter>;
template class LabelledSeries<Gauge>;
template class LabelledSeries<Histogram>;

Catalogue::Catalogue(const BuildInfo& build)
    : registry_(std::make_unique<prometheus::Registry>()),
      counters_(MetricTable().size()),
      gauges_(MetricTable().size()),
      histograms_(MetricTable().size()) {
  for (const MetricRow& row : MetricTable()) {
    if (IsProcessMetric(row.id) || IsStoreMetric(row.id)) continue;
    const std::string name(row.name);
    const std::string help(row.help);
    const size_t index = static_cast<size_t>(row.id);
    switch (row.type) {
      case MetricType::kCounter:
        counters_[index] = &prometheus::BuildCounter().Name(name).Help(help).Register(*registry_);
        break;
      case MetricType::kGauge:
        gauges_[index] = &prometheus::BuildGauge().Name(name).Help(help).Register(*registry_);
        break;
      case MetricType::kHistogram:
        histograms_[index] =
            &prometheus::BuildHistogram().Name(name).Help(help).Register(*registry_);
        break;
    }
  }
  AddSeries(GaugeFamily(MetricId::kBuildInfo), {{"version", build.version},
                                                {"compiler", build.compiler},
                                                {"isa", build.isa},
                                                {"cpu", build.cpu}})
      .Set(1);
  server_ready_ = &AddSeries(GaugeFamily(MetricId::kServerReady), {});
  arena_bytes_ = &AddSeries(GaugeFamily(MetricId::kMemory), {{"kind", "arena"}});
  parameter_bytes_ = &AddSeries(GaugeFamily(MetricId::kMemory), {{"kind", "parameters"}});
  arena_releases_ = &AddSeries(CounterFamily(MetricId::kArenaReleases), {});
  unknown_ = MakeModel("", "");
}

Catalogue::~Catalogue() = default;

Family<Counter>& Catalogue::CounterFamily(MetricId id) const {
  return *counters_[static_cast<size_t>(id)];
}
Family<Gauge>& Catalogue::GaugeFamily(MetricId id) const {
  return *gauges_[static_cast<size_t>(id)];
}
Family<Histogram>& Catalogue::HistogramFamily(MetricId id) const {
  return *histograms_[static_cast<size_t>(id)];
}

std::unique_ptr<ModelMetrics> Catalogue::MakeModel(const std::string& model,
                                                   const std::string& version) {
  const LabelValues labels = {{"model", model}, {"version", version}};
  auto counter = [&](MetricId id) { return &AddSeries(CounterFamily(id), labels); };
  auto gauge = [&](MetricId id) { return &AddSeries(GaugeFamily(id), labels); };
  auto histogram = [&](MetricId id) { return &AddSeries(HistogramFamily(id), labels); };
  auto cache = [&](const char* tier, const char* outcome) {
    LabelValues all = labels;
    all.emplace_back("tier", tier);
    all.emplace_back("outcome", outcome);
    return &AddSeries(CounterFamily(MetricId::kCacheRequests), all);
  };
  auto counters_by = [&](MetricId id, LabelValues fixed = {}) {
    LabelValues all = labels;
    all.insert(all.end(), fixed.begin(), fixed.end());
    const std::vector<absl::string_view>& names = Row(id).labels;
    return std::make_unique<LabelledSeries<Counter>>(CounterFamily(id), all, std::string(names[2]));
  };
  auto histograms_by = [&](MetricId id) {
    return std::make_unique<LabelledSeries<Histogram>>(HistogramFamily(id), labels,
                                                       std::string(Row(id).labels[2]));
  };

  auto metrics = std::make_unique<ModelMetrics>();
  ModelMetrics& m = *metrics;
  m.labels = labels;
  m.tunes = counter(MetricId::kTunes);
  m.probes = counter(MetricId::kProbes);
  m.memory_hits = cache("memory", "hit");
  m.memory_misses = cache("memory", "miss");
  m.store_hits = cache("store", "hit");
  m.store_misses = cache("store", "miss");
  m.cache_recipes = gauge(MetricId::kCacheRecipes);
  m.cache_bytes = gauge(MetricId::kCacheBytes);
  auto waste = [&](const char* kind) {
    LabelValues all = labels;
    all.emplace_back("kind", kind);
    return &AddSeries(GaugeFamily(MetricId::kBucketWaste), all);
  };
  m.bucket_waste_expected = waste("expected");
  m.bucket_waste_actual = waste("actual");
  m.bucket_drift = gauge(MetricId::kBucketDrift);
  m.bucket_saving = gauge(MetricId::kBucketSaving);
  m.bucket_changes = counter(MetricId::kBucketChanges);
  m.captures_saved = counter(MetricId::kCapturesSaved);
  m.withheld_answers = counter(MetricId::kWithheldAnswers);
  m.sections = counter(MetricId::kSections);
  m.section_seconds = counter(MetricId::kSectionSeconds);
  auto eager = [&](const char* outcome) {
    LabelValues all = labels;
    all.emplace_back("outcome", outcome);
    return &AddSeries(CounterFamily(MetricId::kEagerCacheRequests), all);
  };
  m.eager_hits = eager("hit");
  m.eager_misses = eager("miss");
  m.eager_evictions = counter(MetricId::kEagerCacheEvictions);
  m.eager_ops = gauge(MetricId::kEagerCacheOps);
  m.eager_bytes = gauge(MetricId::kEagerCacheBytes);
  m.queue_depth = gauge(MetricId::kQueueDepth);
  m.ready = gauge(MetricId::kModelReady);
  m.warmup_wanted = gauge(MetricId::kWarmupWanted);
  m.warmup_done = gauge(MetricId::kWarmupDone);
  m.compile_duration = histogram(MetricId::kCompileDuration);
  m.batch_size = histogram(MetricId::kBatchSize);
  m.queue_duration = histogram(MetricId::kQueueDuration);
  m.request_duration = histogram(MetricId::kRequestDuration);
  m.nv_success = counter(MetricId::kNvRequestSuccess);
  m.nv_inference_count = counter(MetricId::kNvInferenceCount);
  m.nv_exec_count = counter(MetricId::kNvExecCount);
  m.nv_pending = gauge(MetricId::kNvPendingRequests);
  m.nv_request_us = counter(MetricId::kNvRequestDuration);
  m.nv_queue_us = counter(MetricId::kNvQueueDuration);
  m.nv_compute_input_us = counter(MetricId::kNvComputeInputDuration);
  m.nv_compute_infer_us = counter(MetricId::kNvComputeInferDuration);
  m.nv_compute_output_us = counter(MetricId::kNvComputeOutputDuration);
  m.compiles = counters_by(MetricId::kCompiles);
  m.evictions = counters_by(MetricId::kCacheEvictions);
  m.thrash = counters_by(MetricId::kCacheThrash);
  m.store_misses_by = counters_by(MetricId::kStoreMisses);
  m.replays = counters_by(MetricId::kReplays);
  m.replay_duration = histograms_by(MetricId::kReplayDuration);
  m.valid_elements = counters_by(MetricId::kElements, {{"kind", "valid"}});
  m.padded_elements = counters_by(MetricId::kElements, {{"kind", "padded"}});
  m.request_length = histograms_by(MetricId::kRequestLength);
  m.axis_certified =
      std::make_unique<LabelledSeries<Gauge>>(GaugeFamily(MetricId::kAxisCertified), labels,
                                              std::string(Row(MetricId::kAxisCertified).labels[2]));
  m.requests = counters_by(MetricId::kRequests);
  m.nv_failure = counters_by(MetricId::kNvRequestFailure);
  m.reference_kernels = counters_by(MetricId::kReferenceKernels);
  m.eager_nodes = counters_by(MetricId::kEagerNodes);
  m.eager_seconds = counters_by(MetricId::kEagerSeconds);
  for (int reason = 0; reason < kNumCompileReasons; ++reason) {
    m.compiles->at(CompileReasonName(static_cast<CompileReason>(reason)));
  }
  for (int reason = 0; reason < kNumEvictionReasons; ++reason) {
    m.evictions->at(EvictionReasonName(static_cast<EvictionReason>(reason)));
  }
  for (int miss = 0; miss < kNumStoreMisses; ++miss) {
    m.store_misses_by->at(StoreMissName(static_cast<StoreMiss>(miss)));
  }
  for (absl::string_view code : RequestCodes()) m.requests->at(code);
  for (absl::string_view reason : FailureReasons()) m.nv_failure->at(reason);
  return metrics;
}

ModelMetrics& Catalogue::Model(const std::string& model, const std::string& version) {
  MutexLock lock(mutex_);
  std::unique_ptr<ModelMetrics>& metrics = models_[{model, version}];
  if (metrics == nullptr) metrics = MakeModel(model, version);
  return *metrics;
}

void Catalogue::Announce(ModelMetrics& metrics, const KnownSeries& known) {
  auto announce = [&metrics](absl::string_view bucket) {
    metrics.replays->at(bucket);
    metrics.replay_duration->at(bucket);
    metrics.thrash->at(bucket);
  };
  for (const std::string& bucket : known.buckets) announce(bucket);
  announce("exact");
  for (const std::string& axis : known.axes) {
    metrics.valid_elements->at(axis);
    metrics.padded_elements->at(axis);
    metrics.request_length->at(axis);
    SeriesOf(metrics, axis, known.axes.size());
  }
  for (const std::string& op : known.ops) metrics.reference_kernels->at(op);
  for (const std::string& op : known.eager_ops) {
    metrics.eager_nodes->at(op);
    metrics.eager_seconds->at(op);
  }
}

std::unique_ptr<AxisSeries> Catalogue::SeriesOf(const ModelMetrics& metrics,
                                                const std::string& axis, size_t num_axes) const {
  const size_t most_buckets =
      std::max<size_t>(LabelledSeries<Counter>::kMostValues / num_axes, kFewestBucketsOfAxis);
  LabelValues labels = metrics.labels;
  labels.emplace_back("axis", axis);
  const auto elements = [&](const char* kind) {
    LabelValues all = labels;
    all.emplace_back("kind", kind);
    return LabelledSeries<Counter>(CounterFamily(MetricId::kBucketElements), all, "bucket",
                                   most_buckets);
  };
  std::unique_ptr<AxisSeries> series(new AxisSeries{
      elements("valid"), elements("padded"),
      LabelledSeries<Counter>(CounterFamily(MetricId::kWasted), labels, "bucket", most_buckets)});
  for (auto* one : {&series->valid, &series->padded, &series->wasted_seconds}) one->at("exact");
  return series;
}

void Catalogue::SetVerdict(const ModelMetrics& metrics, const std::string& axis,
                           absl::string_view verdict, const std::string& mixing) {
  LabelValues labels = metrics.labels;
  labels.emplace_back("axis", axis);
  Family<Gauge>& family = GaugeFamily(MetricId::kAxisVerdict);
  MutexLock lock(mutex_);
  Gauge*& series = verdicts_[labels];
  if (series != nullptr) family.Remove(series);
  labels.emplace_back("verdict", std::string(verdict));
  labels.emplace_back("mixing", mixing);
  series = &AddSeries(family, labels);
  series->Set(1);
}

void Catalogue::SetStore(const RecipeStore* store) {
  wants_store_ = true;
  store_ = store;
}

void Catalogue::SetServerReady(bool ready) { server_ready_->Set(ready ? 1 : 0); }

void Catalogue::CountArenaRelease() { arena_releases_->Increment(); }

std::string Catalogue::Scrape() const {
  const MemoryUse memory = memory_();
  arena_bytes_->Set(static_cast<double>(memory.arena_bytes));
  parameter_bytes_->Set(static_cast<double>(memory.parameter_bytes));
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  AppendStoreMetrics(store_, wants_store_, families);
  AppendProcessMetrics(families);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

}  // namespace reprise

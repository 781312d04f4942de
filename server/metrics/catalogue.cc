#include "server/metrics/catalogue.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "server/metrics/open_metrics.h"
#include "server/metrics/process_metrics.h"
#include "server/metrics/store_metrics.h"

namespace reprise {
namespace {

constexpr size_t kMostBucketsOfAllAxes = 512;
constexpr size_t kFewestBucketsOfAxis = 16;

LabelValues LabelsOf(const std::string& model, const std::string& version) {
  return {{"model", model}, {"version", version}};
}

}  // namespace

Catalogue::Catalogue(const BuildInfo& build)
    : registry_(std::make_unique<prometheus::Registry>()),
      server_(MetricScope(*registry_, views_, {}), {{"version", build.version},
                                                    {"compiler", build.compiler},
                                                    {"isa", build.isa},
                                                    {"cpu", build.cpu}}),
      unknown_(std::make_unique<ModelMetrics>(MetricScope(*registry_, views_, LabelsOf("", "")))) {
  server_.build_info->Set(1);
}

Catalogue::~Catalogue() = default;

ModelMetrics& Catalogue::Model(const std::string& model, const std::string& version) {
  MutexLock lock(mutex_);
  std::unique_ptr<ModelMetrics>& metrics = models_[{model, version}];
  if (metrics == nullptr) {
    metrics =
        std::make_unique<ModelMetrics>(MetricScope(*registry_, views_, LabelsOf(model, version)));
  }
  return *metrics;
}

const ModelMetrics* Catalogue::Find(const std::string& model, const std::string& version) const {
  MutexLock lock(mutex_);
  const auto found = models_.find({model, version});
  return found == models_.end() ? nullptr : found->second.get();
}

void Catalogue::Announce(ModelMetrics& metrics, const KnownSeries& known) {
  const auto announce = [&](Announced kind, const std::vector<std::string>& values) {
    for (const std::string& value : values) metrics.scope.Announce(kind, value);
  };
  announce(Announced::kBuckets, known.buckets);
  announce(Announced::kBuckets, {"exact"});
  announce(Announced::kAxes, known.axes);
  for (const std::string& axis : known.axes) MetricsOf(metrics, axis, known.axes.size());
  announce(Announced::kOps, known.ops);
  announce(Announced::kEagerOps, known.eager_ops);
}

std::unique_ptr<AxisMetrics> Catalogue::MetricsOf(const ModelMetrics& metrics,
                                                  const std::string& axis, size_t num_axes) const {
  return std::make_unique<AxisMetrics>(
      metrics.scope, axis,
      std::max<size_t>(kMostBucketsOfAllAxes / num_axes, kFewestBucketsOfAxis));
}

void Catalogue::SetStore(const RecipeStore* store) {
  wants_store_ = true;
  store_ = store;
}

void Catalogue::ForEachModel(const std::function<void(const std::string&, const std::string&,
                                                      const ModelMetrics&)>& f) const {
  std::vector<std::pair<std::pair<std::string, std::string>, const ModelMetrics*>> models;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, metrics] : models_) models.emplace_back(id, metrics.get());
  }
  for (const auto& [id, metrics] : models) f(id.first, id.second, *metrics);
}

std::vector<prometheus::MetricFamily> Catalogue::CollectAll() const {
  refresh_();
  const MemoryUse memory = memory_();
  server_.arena_bytes->Set(static_cast<double>(memory.arena_bytes));
  server_.data_bytes->Set(static_cast<double>(memory.data_bytes));
  server_.parameter_bytes->Set(static_cast<double>(memory.parameter_bytes));
  server_.in_flight_bytes->Set(static_cast<double>(memory.in_flight_bytes));
  server_.grpc_connections->Set(memory.grpc_connections);
  server_.http_connections->Set(memory.http_connections);
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  AppendStoreMetrics(store_, wants_store_, families);
  AppendProcessMetrics(machine_, families);
  return families;
}

std::vector<prometheus::MetricFamily> Catalogue::Collect() const {
  std::vector<prometheus::MetricFamily> families = CollectAll();
  if (!detail_) views_.Reduce(families);
  return families;
}

std::string Catalogue::Scrape() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, Collect());
  return out.str();
}

std::string Catalogue::ScrapeOpenMetrics() const { return OpenMetricsText(Collect(), exemplars_); }

void Catalogue::NoteExemplar(const char* metric, const std::string& model,
                             const std::string& version, absl::string_view trace_id, double value) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  exemplars_.Note(metric, {{"model", model}, {"version", version}},
                  {.trace_id = std::string(trace_id),
                   .value = value,
                   .unix_seconds = std::chrono::duration<double>(now).count()});
}

}  // namespace reprise

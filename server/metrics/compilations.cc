#include "server/metrics/compilations.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;
using prometheus::Counter;

constexpr double kMsPerNs = 1e-6;

std::string Text(const Json& json) {
  // Names come from folders and clients: bytes that are no UTF-8 are replaced.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string TimeText(std::chrono::system_clock::time_point time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

uint64_t CountOf(const Counter& counter) { return static_cast<uint64_t>(counter.Value()); }

// Counts by the value of a label; `total` gets their sum.
Json CountsOf(const SeriesBy<Counter>& series, uint64_t& total) {
  Json json = Json::object();
  series.ForEach([&](const std::string& value, Counter& counter) {
    json[value] = CountOf(counter);
    total += CountOf(counter);
  });
  return json;
}

Json CaptureJson(const MissRecord& record) {
  Json phases = Json::array();
  const auto phase = [&](const char* name, int64_t ns, int64_t rss_bytes) {
    phases.push_back(
        {{"name", name}, {"ms", static_cast<double>(ns) * kMsPerNs}, {"rss_bytes", rss_bytes}});
  };
  phase("specialise", record.phases.specialize_ns, 0);
  phase("passes", record.phases.passes_ns, 0);
  phase("plan", record.phases.plan_ns, 0);
  phase("bind", record.phases.bind_ns, record.compile_rss_bytes);
  phase("prepare", record.phases.prepare_ns, record.prepare_rss_bytes);
  phase("prime", record.phases.prime_ns, record.prime_rss_bytes);
  return {{"sequence", record.sequence},
          {"time", TimeText(record.time)},
          {"recipe", record.recipe},
          {"bucket", record.bucket},
          {"binding", record.binding},
          {"section", record.section},
          {"reason", std::string(CompileReasonName(record.reason))},
          {"cause", record.cause},
          {"nearest", record.nearest},
          {"inputs", record.inputs},
          {"outputs", record.outputs},
          {"behind", record.behind},
          {"total_ms", static_cast<double>(record.phases.total_ns()) * kMsPerNs},
          {"phases", std::move(phases)},
          {"recipe_bytes", record.recipe_bytes},
          {"frame_bytes", record.frame_bytes},
          {"requests_waited", record.num_waiters},
          {"longest_wait_ms", static_cast<double>(record.longest_wait_ns) * kMsPerNs},
          {"suggestion", record.suggestion}};
}

Json ModelJson(const std::string& model, const std::string& version, const ModelMetrics& metrics,
               const MissReport& misses) {
  uint64_t compiles = 0, replays = 0;
  const Json by_reason = CountsOf(metrics.compiles, compiles);
  const Json by_bucket = CountsOf(metrics.replays, replays);
  Json padding = Json::object();
  metrics.valid_elements.ForEach([&](const std::string& axis, Counter& counter) {
    padding[axis]["valid"] = CountOf(counter);
  });
  metrics.padded_elements.ForEach([&](const std::string& axis, Counter& counter) {
    padding[axis]["padded"] = CountOf(counter);
  });
  Json captures = Json::array();
  for (const MissRecord& record : misses.Since(0, model)) {
    if (absl::StrCat(record.model.version) == version) captures.push_back(CaptureJson(record));
  }
  return {{"model", model},
          {"version", version},
          {"compiles", compiles},
          {"compile_seconds", metrics.compile_duration->Collect().histogram.sample_sum},
          {"compiles_by_reason", by_reason},
          {"replays", replays},
          {"replays_by_bucket", by_bucket},
          {"cache",
           {{"hits", CountOf(*metrics.memory_hits)},
            {"misses", CountOf(*metrics.memory_misses)},
            {"store_hits", CountOf(*metrics.store_hits)},
            {"store_misses", CountOf(*metrics.store_misses)}}},
          {"padding", std::move(padding)},
          {"memory",
           {{"recipes", static_cast<uint64_t>(metrics.cache_recipes->Value())},
            {"recipe_bytes", static_cast<uint64_t>(metrics.cache_bytes->Value())}}},
          {"captures", std::move(captures)}};
}

Json SeriesJson(const prometheus::MetricFamily& family, const prometheus::ClientMetric& metric) {
  Json series = {{"labels", Json::object()}};
  for (const auto& label : metric.label) series["labels"][label.name] = label.value;
  switch (family.type) {
    case prometheus::MetricType::Counter:
      series["value"] = metric.counter.value;
      break;
    case prometheus::MetricType::Histogram:
      series["count"] = metric.histogram.sample_count;
      series["sum"] = metric.histogram.sample_sum;
      series["buckets"] = Json::array();
      for (const auto& bucket : metric.histogram.bucket) {
        // The last bound is infinite, which no number of JSON is.
        series["buckets"].push_back(
            {{"le", absl::StrCat(bucket.upper_bound)}, {"count", bucket.cumulative_count}});
      }
      break;
    default:
      series["value"] = metric.gauge.value;
  }
  return series;
}

const char* KindName(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return "counter";
    case prometheus::MetricType::Histogram:
      return "histogram";
    default:
      return "gauge";
  }
}

}  // namespace

std::string CompilationsJson(const std::string& model, const std::string& version,
                             const ModelMetrics& metrics, const MissReport& misses) {
  return Text(ModelJson(model, version, metrics, misses));
}

std::string MetricsJson(const Catalogue& catalogue, const MissReport& misses,
                        const std::string& server_version) {
  Json json = {{"time", TimeText(std::chrono::system_clock::now())},
               {"server_version", server_version},
               {"models", Json::array()}};
  catalogue.ForEachModel(
      [&](const std::string& model, const std::string& version, const ModelMetrics& metrics) {
        json["models"].push_back(ModelJson(model, version, metrics, misses));
      });
  json["metrics"] = Json::object();
  for (const prometheus::MetricFamily& family : catalogue.Collect()) {
    Json series = Json::array();
    for (const auto& metric : family.metric) series.push_back(SeriesJson(family, metric));
    json["metrics"][family.name] = {
        {"kind", KindName(family.type)}, {"help", family.help}, {"series", std::move(series)}};
  }
  return Text(json);
}

}  // namespace reprise

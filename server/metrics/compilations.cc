#include "server/metrics/compilations.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/engine/metrics/compilations.h"

namespace reprise {
namespace {

using prometheus::Counter;

uint64_t CountOf(const Counter& counter) { return static_cast<uint64_t>(counter.Value()); }

// Counts by the value of a label.
std::map<std::string, uint64_t> CountsBy(const SeriesBy<Counter>& series) {
  std::map<std::string, uint64_t> counts;
  series.ForEach(
      [&](const std::string& value, Counter& counter) { counts[value] = CountOf(counter); });
  return counts;
}

void WriteSeries(prometheus::MetricType type, const prometheus::ClientMetric& metric,
                 JsonWriter& json) {
  json.Object("labels", [&] {
    for (const auto& label : metric.label) json.Member(label.name, label.value);
  });
  if (type == prometheus::MetricType::Counter) {
    json.Member("value", metric.counter.value);
  } else if (type == prometheus::MetricType::Histogram) {
    json.Member("count", metric.histogram.sample_count);
    json.Member("sum", metric.histogram.sample_sum);
    json.Array("buckets", [&] {
      for (const auto& bucket : metric.histogram.bucket) {
        json.Object([&] {
          // The last bound is infinite, which no number of JSON is.
          json.Member("le", absl::StrCat(bucket.upper_bound));
          json.Member("count", bucket.cumulative_count);
        });
      }
    });
  } else {
    json.Member("value", metric.gauge.value);
  }
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

ModelCounts CountsOf(const std::string& model, const std::string& version,
                     const ModelMetrics& metrics) {
  ModelCounts counts = {.model = model,
                        .version = version,
                        .compiles_by_reason = CountsBy(metrics.compiles),
                        .compile_seconds = metrics.compile_duration->Collect().histogram.sample_sum,
                        .replays_by_bucket = CountsBy(metrics.replays),
                        .hits = CountOf(*metrics.memory_hits),
                        .misses = CountOf(*metrics.memory_misses),
                        .store_hits = CountOf(*metrics.store_hits),
                        .store_misses = CountOf(*metrics.store_misses),
                        .recipes = static_cast<uint64_t>(metrics.cache_recipes->Value()),
                        .recipe_bytes = static_cast<uint64_t>(metrics.cache_bytes->Value())};
  for (const auto& [axis, valid] : CountsBy(metrics.valid_elements)) {
    counts.padding[axis].valid = valid;
  }
  for (const auto& [axis, padded] : CountsBy(metrics.padded_elements)) {
    counts.padding[axis].padded = padded;
  }
  return counts;
}

std::string MetricsJson(const Catalogue& catalogue, const MissReport& misses,
                        const std::string& server_version) {
  std::vector<ModelCounts> models;
  catalogue.ForEachModel(
      [&](const std::string& model, const std::string& version, const ModelMetrics& metrics) {
        models.push_back(CountsOf(model, version, metrics));
      });
  JsonWriter json(JsonForm::kIndented);
  json.Object([&] {
    json.Member("server_version", server_version);
    WriteModels(models, misses.Since(0), json);
    json.Object("metrics", [&] {
      for (const prometheus::MetricFamily& family : catalogue.Collect()) {
        json.Object(family.name, [&] {
          json.Member("kind", KindName(family.type));
          json.Member("help", family.help);
          json.Array("series", [&] {
            for (const auto& metric : family.metric) {
              json.Object([&] { WriteSeries(family.type, metric, json); });
            }
          });
        });
      }
    });
  });
  return json.Take();
}

}  // namespace reprise

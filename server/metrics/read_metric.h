// A metric that is read at each scrape, where its number is kept elsewhere.
#pragma once

#include <prometheus/metric_family.h>

#include <optional>
#include <string>
#include <utility>

namespace reprise {

enum class MetricType { kCounter, kGauge };

struct ReadMetric {
  const char* name;
  MetricType type;
  const char* help;
};

// Returns the family of a metric; it has no series without a value.
inline prometheus::MetricFamily FamilyOf(const ReadMetric& metric, std::optional<double> value) {
  const bool counts = metric.type == MetricType::kCounter;
  prometheus::MetricFamily family;
  family.name = metric.name;
  family.help = metric.help;
  family.type = counts ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  if (value.has_value()) {
    prometheus::ClientMetric series;
    (counts ? series.counter.value : series.gauge.value) = *value;
    family.metric.push_back(std::move(series));
  }
  return family;
}

}  // namespace reprise

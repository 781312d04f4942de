#include "server/metrics/store_metrics.h"

#include <optional>
#include <string>
#include <utility>

namespace reprise {

bool IsStoreMetric(MetricId id) {
  return id >= MetricId::kStoreUsable && id <= MetricId::kStorePendingWrites;
}

void AppendStoreMetrics(const RecipeStore* store, bool wanted,
                        std::vector<prometheus::MetricFamily>& families) {
  std::optional<RecipeStore::Stats> stats;
  if (store != nullptr) stats = store->GetStats();
  auto append = [&](MetricId id, std::optional<int64_t> value) {
    const MetricRow& row = MetricTable()[static_cast<size_t>(id)];
    prometheus::MetricFamily family;
    family.name = std::string(row.name);
    family.help = std::string(row.help);
    const bool counts = row.type == MetricType::kCounter;
    family.type = counts ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    if (value.has_value()) {
      prometheus::ClientMetric metric;
      (counts ? metric.counter.value : metric.gauge.value) = static_cast<double>(*value);
      family.metric.push_back(metric);
    }
    families.push_back(std::move(family));
  };
  using Stats = RecipeStore::Stats;
  auto append_stat = [&](MetricId id, auto Stats::*member) {
    std::optional<int64_t> value;
    if (stats.has_value()) value = static_cast<int64_t>((*stats).*member);
    if (id == MetricId::kStoreUsable && wanted && !stats.has_value()) value = 0;
    append(id, value);
  };
  append_stat(MetricId::kStoreUsable, &Stats::usable);
  append_stat(MetricId::kStoreWritable, &Stats::writable);
  append_stat(MetricId::kStoreEntries, &Stats::entries);
  append_stat(MetricId::kStoreBytes, &Stats::bytes);
  append_stat(MetricId::kStoreMaxBytes, &Stats::max_bytes);
  append_stat(MetricId::kStoreReads, &Stats::reads);
  append_stat(MetricId::kStoreCorrupt, &Stats::corrupt);
  append_stat(MetricId::kStoreWrites, &Stats::writes);
  append_stat(MetricId::kStoreWriteFailures, &Stats::write_failures);
  append_stat(MetricId::kStoreEvictions, &Stats::evictions);
  append_stat(MetricId::kStorePendingWrites, &Stats::pending);
}

}  // namespace reprise

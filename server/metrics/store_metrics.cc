#include "server/metrics/store_metrics.h"

#include <optional>

#include "server/metrics/read_metric.h"

namespace reprise {
namespace {

using Stats = RecipeStore::Stats;

template <auto Stats::*kMember>
double Read(const Stats& stats) {
  return static_cast<double>(stats.*kMember);
}

// THE table of the recipe store's metrics.
struct StoreRow {
  ReadMetric head;
  double (*read)(const Stats& stats);
  // There without a store as well, as 0, where one was asked for and could not be opened.
  bool tells_that_there_is_none = false;
};

constexpr StoreRow kStoreRows[] = {
    {{"reprise_store_usable", MetricType::kGauge,
      "1 while the recipe store's folder can be used, 0 when it fails; absent without "
      "--recipe-cache"},
     Read<&Stats::usable>,
     /*tells_that_there_is_none=*/true},
    {{"reprise_store_writable", MetricType::kGauge,
      "1 if the recipe store is written to, 0 if it is only read"},
     Read<&Stats::writable>},
    {{"reprise_store_entries", MetricType::kGauge, "Files in the recipe store"},
     Read<&Stats::entries>},
    {{"reprise_store_bytes", MetricType::kGauge, "Bytes of the files in the recipe store"},
     Read<&Stats::bytes>},
    {{"reprise_store_max_bytes", MetricType::kGauge, "Bytes that the recipe store may take"},
     Read<&Stats::max_bytes>},
    {{"reprise_store_reads_total", MetricType::kCounter,
      "Files of the recipe store that were read and intact"},
     Read<&Stats::reads>},
    {{"reprise_store_corrupt_total", MetricType::kCounter,
      "Files of the recipe store that were damaged, and not used"},
     Read<&Stats::corrupt>},
    {{"reprise_store_unauthentic_total", MetricType::kCounter,
      "Files of the recipe store without a MAC by --store-key, which were not used"},
     Read<&Stats::unauthentic>},
    {{"reprise_store_writes_total", MetricType::kCounter, "Files written to the recipe store"},
     Read<&Stats::writes>},
    {{"reprise_store_write_failures_total", MetricType::kCounter,
      "Files that could not be written to the recipe store"},
     Read<&Stats::write_failures>},
    {{"reprise_store_evictions_total", MetricType::kCounter,
      "Files removed from the recipe store, being worth the least"},
     Read<&Stats::evictions>},
    {{"reprise_store_pending_writes", MetricType::kGauge,
      "Files that wait to be written to the recipe store"},
     Read<&Stats::pending>},
};

}  // namespace

void AppendStoreMetrics(const RecipeStore* store, bool wanted,
                        std::vector<prometheus::MetricFamily>& families) {
  std::optional<Stats> stats;
  if (store != nullptr) stats = store->GetStats();
  for (const StoreRow& row : kStoreRows) {
    std::optional<double> value;
    if (stats.has_value()) {
      value = row.read(*stats);
    } else if (wanted && row.tells_that_there_is_none) {
      value = 0;
    }
    families.push_back(FamilyOf(row.head, value));
  }
}

}  // namespace reprise

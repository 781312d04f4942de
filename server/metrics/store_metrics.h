// Counters of the recipe store, read at each scrape.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "runtime/recipe/store.h"

namespace reprise {

// Appends the metrics. Where there is no store (null), families have no series except for
// reprise_store_usable, which is 0 if a store was asked for and could not be opened (`wanted`).
void AppendStoreMetrics(const RecipeStore* store, bool wanted,
                        std::vector<prometheus::MetricFamily>& families);

}  // namespace reprise

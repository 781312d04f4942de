// Facts that the operating system knows of this process, read at each scrape.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <vector>

namespace reprise {

void AppendProcessMetrics(std::vector<prometheus::MetricFamily>& families);

// Resident memory now, in bytes; 0 if /proc cannot be read.
int64_t ResidentBytes();

}  // namespace reprise

// Facts that the operating system knows of this process, read at each scrape.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <vector>

namespace reprise {

void AppendProcessMetrics(std::vector<prometheus::MetricFamily>& families);

}  // namespace reprise

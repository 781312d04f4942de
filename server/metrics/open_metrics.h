// All metrics in the format of OpenMetrics 1.0, which has exemplars
// (https://github.com/OpenObservability/OpenMetrics).
//
// Names are those of the text format: counters whose names do not end in `_total`, as clients of
// other servers know them, are of type unknown, since the format would rename them; so are those
// whose names without it are names of gauges.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/metrics/exemplars.h"

namespace prometheus {
struct MetricFamily;
}

namespace reprise {

inline constexpr char kOpenMetricsType[] =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

std::string OpenMetricsText(const std::vector<prometheus::MetricFamily>& families,
                            const Exemplars& exemplars);

// Returns whether the field `Accept` of a scraper prefers it to the text format.
bool PrefersOpenMetrics(absl::string_view accept);

}  // namespace reprise

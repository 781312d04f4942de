// A scrape of a metrics endpoint.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise::cli {

// One line of a page in Prometheus's text format.
struct MetricSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

// Returns every sample, in the order of the page, without comments and lines that are no sample.
std::vector<MetricSample> ParseMetrics(absl::string_view page);

// GET http://ADDRESS/metrics. `address` is HOST:PORT. UNAVAILABLE names the address.
absl::StatusOr<std::vector<MetricSample>> ScrapeMetrics(const std::string& address);

}  // namespace reprise::cli

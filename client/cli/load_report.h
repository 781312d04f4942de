// The report of a load, as text for people, and as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/cli/load.h"

namespace reprise::cli {

// Returns the value below which `percent` of the values lie (nearest rank); 0 for none. Sorts a
// copy.
double Percentile(std::vector<double> values, double percent);

// Counts of requests that failed, keyed by the texts of their errors.
using ErrorCounts = std::map<std::string, int64_t>;
// Returns a table of them after an empty line; empty where there are none.
std::string ErrorTable(const ErrorCounts& errors);
nlohmann::ordered_json ErrorsJson(const ErrorCounts& errors);

// Returns the same figures as an object of JSON: "model" and the members in docs/cli.md.
std::string LoadJson(const LoadResult& result, const LoadOptions& options);

// Throughput, latencies, errors by kind, and a table with a row for each bucket.
std::string LoadReport(const LoadResult& result);

}  // namespace reprise::cli

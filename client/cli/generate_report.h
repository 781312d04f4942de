// The report of a load of requests for tokens.
#pragma once

#include <string>

#include "client/cli/generate_load.h"

namespace reprise::cli {

// Percentiles of the times, with charts, and tokens a second.
std::string GenerateReport(const GenerateLoadResult& result);

// Returns the same figures as an object of JSON, without the charts; docs/cli.md has the fields.
std::string GenerateJson(const GenerateLoadResult& result, const GenerateLoadOptions& options);

}  // namespace reprise::cli

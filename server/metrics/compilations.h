// The compile statistics of models, and all metrics, as JSON: the answer of GET
// /v2/models/M/compilations and the contents of --metrics-file. The form of a model is in
// runtime/engine/metrics/compilations.h.
#pragma once

#include <string>

#include "runtime/engine/metrics/model_counts.h"
#include "runtime/engine/types/miss_report.h"
#include "server/metrics/catalogue.h"

namespace reprise {

// Returns the counters of a version, as they are now.
ModelCounts CountsOf(const std::string& model, const std::string& version,
                     const ModelMetrics& metrics);

// Returns all models of the catalogue as "models", and every metric as "metrics": by name its
// kind, help and series, each with labels and value (histograms: count, sum and buckets).
std::string MetricsJson(const Catalogue& catalogue, const MissReport& misses,
                        const std::string& server_version);

}  // namespace reprise

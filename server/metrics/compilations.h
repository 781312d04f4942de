// The compile statistics of models, and all metrics, as JSON: what GET /v2/models/M/compilations
// answers and --metrics-file writes.
//
//   {"model": "minilm", "version": "1", "compiles": 3, "compile_seconds": 0.08,
//    "compiles_by_reason": {"first_request": 1, ...}, "replays": 800,
//    "replays_by_bucket": {"b1_s16": 500, ...}, "cache": {"hits": 797, "misses": 3},
//    "padding": {"sequence": {"valid": 9000, "padded": 1000}},
//    "memory": {"recipes": 3, "recipe_bytes": 90000},
//    "captures": [{"sequence": 1, "time": ..., "recipe": KEY, "bucket": ..., "binding": ...,
//                  "reason": ..., "phases": [{"name": "specialise", "ms": 0.1}, ...], ...}, ...]}
//
// Captures are those that the report of misses still has, the last 1,024 of all models.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/engine/types/miss_report.h"
#include "server/metrics/catalogue.h"

namespace reprise {

// One version of a model.
std::string CompilationsJson(const std::string& model, const std::string& version,
                             const ModelMetrics& metrics, const MissReport& misses);

// All models of the catalogue as "models", and every metric as "metrics": by name its kind, help
// and series, each with labels and value (histograms: count, sum and buckets).
std::string MetricsJson(const Catalogue& catalogue, const MissReport& misses,
                        const std::string& server_version);

}  // namespace reprise

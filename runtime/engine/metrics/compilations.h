// The compile statistics of models as JSON: the answer of GET /v2/models/M/compilations, and the
// content of metrics files.
//
//   {"model": "minilm", "version": "1", "compiles": 3, "compile_seconds": 0.08,
//    "compiles_by_reason": {"first_request": 1, ...}, "replays": 800,
//    "replays_by_bucket": {"b1_s16": 500, ...}, "cache": {"hits": 797, "misses": 3, ...},
//    "padding": {"sequence": {"valid": 9000, "padded": 1000}},
//    "memory": {"recipes": 3, "recipe_bytes": 90000},
//    "captures": [{"sequence": 1, "time": ..., "recipe": KEY, "bucket": ..., "binding": ...,
//                  "reason": ..., "phases": [{"name": "specialise", "ms": 0.1}, ...], ...}, ...]}
//
// The captures are the ones that a report of misses still has, the last 1,024 of all models.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "runtime/engine/metrics/model_counts.h"
#include "runtime/engine/types/miss_report.h"
#include "runtime/json/json_writer.h"

namespace reprise {

// Writes the object of one version of a model; it takes that version's records from `captures`.
void WriteCompilations(const ModelCounts& counts, absl::Span<const MissRecord> captures,
                       JsonWriter& json);
std::string CompilationsText(const ModelCounts& counts, absl::Span<const MissRecord> captures);

// Writes the members "time" and "models" of an object that `json` is in.
void WriteModels(absl::Span<const ModelCounts> models, absl::Span<const MissRecord> captures,
                 JsonWriter& json);
// Returns an object of these two alone.
std::string ModelsText(absl::Span<const ModelCounts> models, absl::Span<const MissRecord> captures);

}  // namespace reprise

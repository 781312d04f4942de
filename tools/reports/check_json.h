// The findings of `reprise check` about a model, as JSON; docs/cli.md has the fields.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/engine.h"

namespace reprise::cli {

// Compiles every bucket, runs none of them. `path`: the model's name on the command line.
// `texts`: the facts about texts in its folder, or nothing.
absl::StatusOr<std::string> CheckJson(const Engine& engine, const Model& model,
                                      const std::string& path, const std::string& texts,
                                      int streams);
// Returns the same of a model that cannot be served.
std::string RefusedJson(const std::string& path, const std::vector<std::string>& reasons);

// Returns the matrix of `check --ops`.
std::string OpMatrixJson();

}  // namespace reprise::cli

// The `parameters` of config.pbtxt that are Reprise's own: one table of name, default and meaning.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/config/model_settings.h"

namespace reprise {

struct ModelParameterInfo {
  std::string name;  // "reprise.max_exact"; one that ends in ".<axis>" stands for a family
  std::string type;  // "list of sizes", "integer", "exact|reject"
  std::string default_value;
  std::string meaning;
};

// Returns every parameter: the documentation is made from this table.
std::vector<ModelParameterInfo> ModelParameterTable();

// Applies `name` = `value`. Errors: INVALID_ARGUMENT naming the parameter and the value.
absl::Status ApplyModelParameter(absl::string_view name, absl::string_view value,
                                 ModelSettings& settings);

// Returns whether `name` is no parameter of ours and nearly one.
bool IsNearModelParameter(absl::string_view name);

}  // namespace reprise

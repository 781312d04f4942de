// config.pbtxt: the text form of Triton's ModelConfig. Every field in it is honoured or refused by
// name. Where hints are taken (see config_hints.h), those are left out, and ModelSettings::hints
// says so of each: nothing is ignored in silence.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config/model_settings.h"

namespace reprise {

// Returns the fields that are honoured, as paths ("dynamic_batching.max_queue_delay_microseconds").
std::vector<std::string> SupportedConfigFields();

// Parses `text`, the config of the model in the folder `model_name`. An empty text is no config.
// Errors: INVALID_ARGUMENT for an unreadable or contradictory config, UNIMPLEMENTED for a field or
// value that is not supported. Both name the field.
absl::StatusOr<ModelSettings> ParseModelConfig(
    absl::string_view text, absl::string_view model_name,
    ConfigStrictness strictness = ConfigStrictness::kStrict);

// Returns the text of a config that a client sends as JSON (Triton's parameter `config` of a load).
// Errors: INVALID_ARGUMENT for invalid JSON or an unknown field.
absl::StatusOr<std::string> ConfigTextFromJson(const std::string& json);

}  // namespace reprise

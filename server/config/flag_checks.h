// Checks of the values of flags, as the parser of the command line calls them.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/config/options.h"

namespace reprise {

// Says why `text` is no NAME=PATH of a model; the empty text where it is one.
std::string TroubleOfModel(std::string& text);

// Says why `text` is no address of a collector; the empty text where it is one.
std::string TroubleOfEndpoint(std::string& text);

// Returns the place that ADDRESS:PORT names; nullopt where it names none.
std::optional<Endpoint> EndpointOf(absl::string_view text);

// Says why `text` is no ADDRESS:PORT; the empty text where it is one.
std::string TroubleOfAddress(std::string& text);

// Says why `text` cannot stand in a header; the empty text where it can.
std::string TroubleOfInstance(std::string& text);

}  // namespace reprise

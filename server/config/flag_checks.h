// Checks of the values of flags, as the parser of the command line calls them.
#pragma once

#include <string>

namespace reprise {

// Says why `text` is no NAME=PATH of a model; the empty text where it is one.
std::string TroubleOfModel(std::string& text);

// Says why `text` is no address of a collector; the empty text where it is one.
std::string TroubleOfEndpoint(std::string& text);

// Says why ranks cannot meet at `text`; the empty text where they can.
std::string TroubleOfRankAddress(std::string& text);

// Says why `text` cannot stand in a header; the empty text where it can.
std::string TroubleOfInstance(std::string& text);

}  // namespace reprise

// Planted faults: the draws are only worth something if a wrong rule shows.
#pragma once

#include <string>
#include <vector>

namespace reprise::obligations {

// Returns the faults that were planted and not seen, in words. One for each rule that lets
// positions see each other: it lets everything pass. One for those that let none: an op that says
// so of itself, and reads others.
std::vector<std::string> UnseenPlantedFaults();

}  // namespace reprise::obligations

// Texts of graphs with parts that no drawn model has, and texts that are none.
#pragma once

#include <string>
#include <vector>

namespace reprise::fuzz {

std::vector<std::string> RareGraphTexts();
// Returns one for each way in which a text is no graph.
std::vector<std::string> RefusedGraphTexts();

}  // namespace reprise::fuzz

// Requests and configurations that are taken, to begin with.
#pragma once

#include <string>
#include <vector>

namespace reprise::fuzz {

std::vector<std::string> ConfigSeeds();
std::vector<std::string> ConfigJsonSeeds();
std::vector<std::string> RestSeeds();
std::vector<std::string> GrpcSeeds();

}  // namespace reprise::fuzz

// Accepted and refused requests and configurations: the seeds of fuzzing.
#pragma once

#include <string>
#include <vector>

namespace reprise::fuzz {

// Taken, and refused: one for each way in which a text is none.
std::vector<std::string> ConfigSeeds();
std::vector<std::string> RefusedConfigs();
// Each parameter of the table with each of many values, of which some fit.
struct ParameterConfig {
  std::string name, text;
};
std::vector<ParameterConfig> ParameterConfigs();
std::vector<std::string> ConfigJsonSeeds();

std::vector<std::string> RestSeeds();
std::vector<std::string> RefusedRestBodies();
std::vector<std::string> GrpcSeeds();
std::vector<std::string> RefusedGrpcMessages();

}  // namespace reprise::fuzz

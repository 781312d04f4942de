// Writes the seeds as files for libFuzzer: write_request_seeds FOLDER.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "server/config/model_config.h"
#include "server/config/model_parameters.h"
#include "tests/fuzz/requests/seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "write_request_seeds FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const auto write = [&](const char* kind, const std::vector<std::string>& seeds) {
    std::filesystem::create_directories(folder / kind);
    for (size_t i = 0; i < seeds.size(); ++i) {
      std::ofstream(folder / kind / std::to_string(i), std::ios::binary) << seeds[i];
    }
  };
  using namespace reprise::fuzz;
  const auto both = [](std::vector<std::string> taken, const std::vector<std::string>& refused) {
    taken.insert(taken.end(), refused.begin(), refused.end());
    return taken;
  };
  std::vector<std::string> configs = both(ConfigSeeds(), RefusedConfigs());
  for (ParameterConfig& config : ParameterConfigs()) configs.push_back(std::move(config.text));
  write("config", configs);
  write("config_json", ConfigJsonSeeds());
  write("rest", both(RestSeeds(), RefusedRestBodies()));
  write("grpc", both(GrpcSeeds(), RefusedGrpcMessages()));
  // Words for -dict=FILE.
  std::ofstream words(folder / "config.dict");
  for (const std::string& field : reprise::SupportedConfigFields()) {
    words << '"' << field.substr(field.rfind('.') + 1) << "\"\n";
  }
  for (const auto& parameter : reprise::ModelParameterTable()) {
    words << '"' << parameter.name.substr(0, parameter.name.find('<')) << "\"\n";
  }
  return 0;
}

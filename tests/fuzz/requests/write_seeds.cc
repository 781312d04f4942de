// Writes the seeds as files for libFuzzer: write_request_seeds FOLDER.
#include <cstdio>
#include <filesystem>
#include <fstream>

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
  write("config", reprise::fuzz::ConfigSeeds());
  write("config_json", reprise::fuzz::ConfigJsonSeeds());
  write("rest", reprise::fuzz::RestSeeds());
  write("grpc", reprise::fuzz::GrpcSeeds());
  return 0;
}

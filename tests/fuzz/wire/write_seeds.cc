// Writes the seeds as files for libFuzzer: write_wire_seeds FOLDER.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/wire/seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "write_wire_seeds FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const auto write = [&](const char* kind, const std::vector<reprise::Seed>& seeds) {
    std::filesystem::create_directories(folder / kind);
    for (const reprise::Seed& seed : seeds) {
      std::ofstream(folder / kind / seed.name, std::ios::binary) << '\0' << seed.bytes;
    }
  };
  write("http2", reprise::Http2Seeds());
  write("http1", reprise::Http1Seeds());
  return 0;
}

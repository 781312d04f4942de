// Writes the seeds as files for libFuzzer: write_text_seeds FOLDER.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/texts/seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "write_text_seeds FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const auto write = [&](const char* kind, const std::vector<reprise::TextSeed>& seeds) {
    std::filesystem::create_directories(folder / kind);
    for (const reprise::TextSeed& seed : seeds) {
      std::ofstream(folder / kind / seed.name, std::ios::binary) << seed.bytes;
    }
  };
  write("files", reprise::TokenizerFileSeeds());
  write("texts", reprise::TextSeeds());
  return 0;
}

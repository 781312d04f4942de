// Writes the seeds as files for libFuzzer: write_wire_seeds FOLDER.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/wire/seeds.h"

namespace {

// In parts, with a server that leaves, a client that vanishes, on a spare connection.
constexpr char kOtherArrivals[] = {'\x07', '\x27', '\x40', '\x47', '\x80'};
constexpr size_t kMostBytesOfVariants = 2000;

}  // namespace

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
      if (seed.bytes.size() > kMostBytesOfVariants) continue;
      for (const char arrival : kOtherArrivals) {
        const std::string name = seed.name + "_" + std::to_string(arrival & 0xff);
        std::ofstream(folder / kind / name, std::ios::binary) << arrival << seed.bytes;
      }
    }
  };
  write("http2", reprise::Http2Seeds());
  write("http1", reprise::Http1Seeds());
  return 0;
}

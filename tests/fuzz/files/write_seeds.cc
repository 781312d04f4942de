// Writes the seeds as files, for libFuzzer: write_seeds onnx|gguf|graph_text|record FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/fuzz/files/graph_texts.h"
#include "tests/fuzz/files/odd_models.h"
#include "tests/fuzz/files/seeds.h"

int main(int argc, char** argv) {
  using namespace reprise::fuzz;
  constexpr int kModels = 400;
  const std::string kind = argc == 3 ? argv[1] : "";
  std::vector<std::string> seeds;
  if (kind == "onnx") {
    seeds = OnnxSeeds(kModels);
    for (std::string& model : OddModels()) seeds.push_back(std::move(model));
  }
  if (kind == "graph_text") {
    seeds = GraphTextSeeds(kModels);
    for (std::string& text : RefusedGraphTexts()) seeds.push_back(std::move(text));
  }
  if (kind == "gguf") seeds = GgufSeeds();
  if (kind == "record") seeds = RecordSeeds();
  if (seeds.empty()) {
    std::fputs("usage: write_seeds onnx|gguf|graph_text|record FOLDER\n", stderr);
    return 2;
  }
  std::filesystem::create_directories(argv[2]);
  for (size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream(std::filesystem::path(argv[2]) / std::to_string(i), std::ios::binary) << seeds[i];
  }
  return 0;
}

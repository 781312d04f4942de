// Compares readings of models in files (passes/read) with specialising them, at 20 sizes.
//
//   shadow_files [--environment FOLDER] [FOLDER or FILE.onnx...]
//
// All model files below a folder are compared, as they are imported and after the load passes.
// Sizes that a file fixes become axes as well, so that cases of one op say something of other
// sizes; inputs with few elements that lie next to the file of a case are taken as constants, since
// some decide shapes.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/onnx/importer.h"
#include "runtime/passes/kit/pass.h"
#include "tests/conformance/case.h"
#include "tests/testing/shadow/shadow.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int kSizes = 20;
constexpr int64_t kFewElements = 64;

// Returns the sizes of axes: those that the file's dims were, primes for names, and others around
// them.
std::vector<Binding> Bindings(const std::map<std::string, int64_t>& fixed, const Graph& graph) {
  std::map<std::string, int64_t> hints = fixed;
  constexpr int64_t kHints[] = {3, 7, 5, 11, 13, 17, 19, 23};
  size_t next = 0;
  for (const ValueId id : graph.inputs()) {
    for (const Dim& dim : graph.value(id).dims) {
      if (!dim.is_constant() && !hints.contains(dim.symbol)) {
        hints[dim.symbol] = kHints[next++ % std::size(kHints)];
      }
    }
  }
  std::vector<Binding> bindings = {{.axes = hints}};
  for (int i = 1; i < kSizes; ++i) {
    Binding binding;
    int64_t turn = i;
    for (const auto& [symbol, hint] : hints) {
      constexpr int64_t kSteps[] = {0, 1, 2, -1, 4, 8, 16, 32, 64, -2};
      binding.axes[symbol] = std::max<int64_t>(0, hint + kSteps[turn % std::ssize(kSteps)]);
      turn = turn * 3 + 1;
    }
    bindings.push_back(std::move(binding));
  }
  // Some sizes are one in truth.
  for (const int64_t all : {8, 32, 64}) {
    Binding binding;
    for (const auto& [symbol, hint] : hints) binding.axes[symbol] = all;
    bindings.push_back(std::move(binding));
  }
  return bindings;
}

// Small integers of the case's first request become constants of the graph.
void FixSmallInputs(const std::string& folder, ImportedModel& model) {
  const auto sets = ReadDataSets(folder);
  if (!sets.ok() || sets->empty()) return;
  const std::vector<Tensor>& inputs = (*sets)[0].inputs;
  for (size_t i = 0; i < inputs.size() && i < model.inputs.size(); ++i) {
    const Tensor tensor = AsDeclared(inputs[i], model.inputs[i].dtype);
    const ValueId id = model.graph.FindValue(model.inputs[i].name);
    if (id == kNone || tensor.num_elements() > kFewElements) continue;
    if (!IsInteger(tensor.dtype()) && tensor.num_elements() > 4) continue;
    if (model.graph.value(id).kind == Value::Kind::kInput) {
      model.graph.ReplaceWithConstant(id, tensor);
    }
  }
}

std::string Compare(const std::string& path, ShadowCounts& counts) {
  auto model = ImportOnnxFile(path);
  if (!model.ok()) return "";
  for (const bool fixed : {false, true}) {
    ImportedModel read = *model;
    if (fixed) FixSmallInputs(fs::path(path).parent_path().string(), read);
    for (const bool passes : {false, true}) {
      if (passes && !RunLoadPasses(read.graph).ok()) continue;
      std::map<std::string, int64_t> sizes;
      const Graph wide = WithAxesFor(read.graph, sizes);
      for (const Graph* graph : {static_cast<const Graph*>(&read.graph), &wide}) {
        const std::string difference = ShadowDifference(
            *graph, Bindings(graph == &wide ? sizes : std::map<std::string, int64_t>(), *graph),
            counts);
        if (!difference.empty()) return difference;
      }
    }
  }
  return "";
}

int Run(const std::vector<std::string>& places) {
  std::vector<std::string> files;
  for (const std::string& place : places) {
    if (!fs::is_directory(place)) {
      files.push_back(place);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(place)) {
      if (entry.path().extension() == ".onnx") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  ShadowCounts counts;
  int wrong = 0;
  for (const std::string& file : files) {
    const std::string difference = Compare(file, counts);
    if (difference.empty()) continue;
    ++wrong;
    std::printf("%s: %s\n", file.c_str(), difference.c_str());
  }
  std::printf("%zu files, %d differ: %s\n", files.size(), wrong, counts.ToString().c_str());
  return wrong == 0 && !files.empty() ? 0 : 1;
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  std::vector<std::string> places;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--environment" && i + 1 < argc) {
      namespace fs = std::filesystem;
      std::error_code error;
      for (const auto& python : fs::directory_iterator(fs::path(argv[++i]) / "lib", error)) {
        const fs::path data = python.path() / "site-packages/onnx/backend/test/data";
        if (fs::is_directory(data)) places.push_back(data.string());
      }
    } else {
      places.push_back(argument);
    }
  }
  return reprise::Run(places);
}

// conformance_runner: runs cases of the ONNX backend suite and prints a score.
//
//   conformance_runner --environment FOLDER --device WAY [--score FILE] [--verbose] [CASE...]
//   conformance_runner --suite FOLDER --list NAME ...
//   conformance_runner --models FOLDER --device WAY
//
// The environment is a Python environment with the onnx package, whose data files hold the suite:
// every case below its folders node, simple, pytorch-converted and pytorch-operator that is in
// scope is run. --suite names that folder itself; --list says which list of cases it is in the file
// of scores (onnx-1.16 without it). With --score the run fails when the number that pass differs
// from the line "<list> <way>" in FILE. Without cases on the command line all are run. WAY is one
// of those of execute.h. --print-cases runs nothing and prints the folders of the cases in scope.
//
// --models runs every case in FOLDER, whatever its ops, against the tighter bound that answers of
// whole models have: 1e-4 + 1e-4 relative.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/importer.h"
#include "tests/conformance/case.h"
#include "tests/conformance/execute.h"
#include "tests/conformance/scope.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string data;
  std::string device = "rows";
  std::string models;
  std::string score;
  std::string list = "onnx-1.16";
  bool print_cases = false;
  Tolerance tolerance;
  bool verbose = false;
  std::vector<std::string> cases;
};

// Folders of the suite that hold cases; `real` needs downloads, `light` has no data.
constexpr const char* kFolders[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

// Returns the suite's folder in a Python environment, or "" when there is none.
std::string FindSuite(const std::string& environment) {
  std::error_code error;
  for (const auto& python : fs::directory_iterator(fs::path(environment) / "lib", error)) {
    const fs::path data = python.path() / "site-packages/onnx/backend/test/data";
    if (fs::is_directory(data)) return data.string();
  }
  return "";
}

absl::Status RunCase(const std::string& folder, const Options& options) {
  ASSIGN_OR_RETURN(std::vector<DataSet> sets, ReadDataSets(folder));
  ASSIGN_OR_RETURN(const ImportedModel model, ImportOnnxFile(folder + "/model.onnx"));
  for (DataSet& set : sets) {
    for (size_t i = 0; i < set.inputs.size() && i < model.inputs.size(); ++i) {
      set.inputs[i] = AsDeclared(set.inputs[i], model.inputs[i].dtype);
    }
    ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, Execute(model, set.inputs, options.device));
    if (outputs.size() != set.outputs.size()) {
      return absl::InternalError(
          absl::StrCat("has ", outputs.size(), " outputs, expected ", set.outputs.size()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const absl::Status status = CompareTensors(
          outputs[i], AsDeclared(set.outputs[i], outputs[i].dtype()), options.tolerance);
      if (!status.ok()) {
        return absl::InternalError(absl::StrCat("output ", i, " ", status.message()));
      }
    }
  }
  return absl::OkStatus();
}

// Returns the score in a file of lines "<list> <way> <passed>"; -1 when there is none.
int ExpectedScore(const Options& options) {
  std::ifstream file(options.score);
  std::string list, way;
  int score = 0;
  while (file >> list >> way >> score) {
    if (list == options.list && way == options.device) return score;
  }
  return -1;
}

// Runs every case of a folder, in scope or not.
int RunModels(const Options& options) {
  int passed = 0, failed = 0;
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(options.models)) cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  for (const fs::path& path : cases) {
    const absl::Status status = RunCase(path.string(), options);
    std::printf("%s %s %s\n", status.ok() ? "passed" : "FAILED", path.filename().c_str(),
                status.ok() ? "" : std::string(status.ToString()).c_str());
    ++(status.ok() ? passed : failed);
  }
  std::printf("models %s: %d of %d pass\n", options.device.c_str(), passed, passed + failed);
  return passed > 0 && failed == 0 ? 0 : 1;
}

int Run(const Options& options) {
  std::vector<fs::path> cases;
  for (const char* folder : kFolders) {
    if (!fs::is_directory(fs::path(options.data) / folder)) {
      std::fprintf(stderr, "no folder '%s' in '%s'\n", folder, options.data.c_str());
      return 2;
    }
    for (const auto& entry : fs::directory_iterator(fs::path(options.data) / folder)) {
      if (fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
    }
  }
  std::sort(cases.begin(), cases.end());
  int passed = 0, failed = 0, excluded = 0, outside = 0;
  std::map<std::string, int> outside_reasons;
  for (const fs::path& path : cases) {
    const std::string name = path.filename().string();
    if (!options.cases.empty() &&
        std::find(options.cases.begin(), options.cases.end(), name) == options.cases.end()) {
      continue;
    }
    onnx::ModelProto model;
    std::ifstream file(path / "model.onnx", std::ios::binary);
    if (!model.ParseFromIstream(&file)) {
      std::printf("FAILED %s: the model cannot be parsed\n", name.c_str());
      ++failed;
      continue;
    }
    if (const auto reason = OutsideScope(model)) {
      ++outside;
      ++outside_reasons[*reason];
      continue;
    }
    if (const auto reason = ExclusionReason(name)) {
      if (!options.print_cases) std::printf("excluded %s: %s\n", name.c_str(), reason->c_str());
      ++excluded;
      continue;
    }
    if (options.print_cases) {
      std::printf("%s\n", path.c_str());
      continue;
    }
    const absl::Status status = RunCase(path.string(), options);
    if (status.ok()) {
      ++passed;
      if (options.verbose) std::printf("passed %s\n", name.c_str());
    } else {
      ++failed;
      std::printf("FAILED %s: %s\n", name.c_str(), std::string(status.ToString()).c_str());
    }
  }
  if (options.print_cases) return 0;
  if (options.verbose) {
    for (const auto& [reason, count] : outside_reasons) {
      std::printf("outside scope: %s: %d cases\n", reason.c_str(), count);
    }
  }
  std::printf("score %s %s: %d of %d cases pass; %d excluded, %d outside scope\n",
              options.list.c_str(), options.device.c_str(), passed, passed + failed, excluded,
              outside);
  if (options.score.empty()) return failed == 0 ? 0 : 1;
  const int expected = ExpectedScore(options);
  if (expected < 0) {
    std::printf("'%s' has no line for '%s %s'\n", options.score.c_str(), options.list.c_str(),
                options.device.c_str());
    return 1;
  }
  if (passed < expected) {
    std::printf("the score fell: %s says %d\n", options.score.c_str(), expected);
    return 1;
  }
  if (passed > expected) {
    std::printf("the score rose: put %d into %s\n", passed, options.score.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  reprise::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (argument == "--environment") {
      const std::string environment = value();
      options.data = reprise::FindSuite(environment);
      if (options.data.empty()) {
        std::fprintf(stderr, "no onnx package in '%s'\n", environment.c_str());
        return 2;
      }
    } else if (argument == "--suite") {
      options.data = value();
    } else if (argument == "--list") {
      options.list = value();
    } else if (argument == "--print-cases") {
      options.print_cases = true;
    } else if (argument == "--device") {
      options.device = value();
    } else if (argument == "--models") {
      options.models = value();
      options.tolerance = {.relative = 1e-4, .of_largest = 0, .absolute = 1e-4};
    } else if (argument == "--score") {
      options.score = value();
    } else if (argument == "--verbose") {
      options.verbose = true;
    } else {
      options.cases.push_back(argument);
    }
  }
  if (!options.models.empty()) return reprise::RunModels(options);
  if (options.data.empty()) {
    std::fprintf(stderr,
                 "usage: conformance_runner --environment FOLDER|--suite FOLDER --list NAME "
                 "[--device WAY] [--score FILE] [--verbose] [--print-cases] [CASE...]\n"
                 "       conformance_runner --models FOLDER [--device WAY]\n");
    return 2;
  }
  return reprise::Run(options);
}

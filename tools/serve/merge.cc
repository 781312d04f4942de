// reprise merge: models one after another as one file, which is captured as one graph.

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/importer.h"
#include "runtime/onnx/merge_models.h"
#include "runtime/recipe/record_file.h"
#include "tools/serve/commands.h"

namespace reprise::cli {
namespace {

struct MergeFlags {
  std::vector<std::string> models;
  std::string out;
  std::vector<std::string> maps;     // "y:x"
  std::vector<std::string> outputs;  // the merged model's
  bool json = false;
};

// Returns a file's name without its ending, or its folder's where every file is called alike.
std::string LabelOf(const std::string& path, const std::map<std::string, int>& taken) {
  const std::filesystem::path file = std::filesystem::absolute(path);
  std::string label = file.stem().string();
  if (label == "model") label = file.parent_path().filename().string();
  return taken.contains(label) ? absl::StrCat(label, "_", taken.size() + 1) : label;
}

absl::Status RunMerge(const MergeFlags& flags) {
  std::vector<ModelPart> parts;
  std::map<std::string, int> labels;
  for (const std::string& path : flags.models) {
    ASSIGN_OR_RETURN(onnx::ModelProto model, ReadWholeModel(path));
    parts.push_back({.label = LabelOf(path, labels), .model = std::move(model)});
    labels[parts.back().label] = 1;
  }
  for (const std::string& map : flags.maps) {
    const size_t colon = map.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == map.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--map ", map, ": must be OUTPUT:INPUT, of a model and of a later one"));
    }
    const std::string from = map.substr(0, colon), to = map.substr(colon + 1);
    bool found = false;
    for (size_t i = 1; i < parts.size(); ++i) {
      for (const onnx::ValueInfoProto& input : parts[i].model.graph().input()) {
        if (input.name() != to) continue;
        parts[i].inputs[to] = from;
        found = true;
      }
    }
    if (!found) {
      return absl::InvalidArgumentError(
          absl::StrCat("--map ", map, ": no model after the first has an input '", to, "'"));
    }
  }
  ASSIGN_OR_RETURN(const onnx::ModelProto merged, MergeModels(parts, flags.outputs));
  const std::string bytes = merged.SerializeAsString();
  // A model that cannot be read again is not written.
  RETURN_IF_ERROR(ImportOnnxBytes(bytes).status());
  const std::filesystem::path out = std::filesystem::absolute(flags.out);
  RETURN_IF_ERROR(WriteFileAtomically(out.parent_path().string(), out.filename().string(), bytes));
  const auto names = [](const auto& infos) {
    std::vector<std::string> all;
    for (const onnx::ValueInfoProto& info : infos) all.push_back(info.name());
    return all;
  };
  const std::vector<std::string> inputs = names(merged.graph().input());
  const std::vector<std::string> outputs = names(merged.graph().output());
  if (flags.json) {
    return PrintJson(
        {{"file", flags.out}, {"models", flags.models}, {"inputs", inputs}, {"outputs", outputs}});
  }
  std::printf("%s: %zu models as one, inputs %s, outputs %s\n", flags.out.c_str(), parts.size(),
              absl::StrJoin(inputs, ", ").c_str(), absl::StrJoin(outputs, ", ").c_str());
  return absl::OkStatus();
}

}  // namespace

void AddMerge(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<MergeFlags>();
  CLI::App* command =
      app.add_subcommand("merge", "Join models one after another into one, captured as one graph");
  AddOption(*command, "models", flags->models, "A.onnx B.onnx",
            "Model files, in the order in which they run")
      ->required()
      ->expected(2, -1)
      ->check(CLI::ExistingFile);
  AddOption(*command, "--out", flags->out, "FILE", "File to write")->required();
  AddOption(*command, "--map", flags->maps, "OUTPUT:INPUT",
            "An output or input of a model, and the input of a later one that takes it; "
            "equal names are joined without");
  AddOption(*command, "--output", flags->outputs, "NAME",
            "An output of the merged model; all that no later model reads if not given");
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunMerge(*flags); }; });
}

}  // namespace reprise::cli

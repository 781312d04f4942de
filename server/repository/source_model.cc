#include "server/repository/source_model.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/shape.h"
#include "runtime/onnx/merge_models.h"
#include "server/hub/safetensors.h"

namespace reprise {
namespace {

using Step = inference::ModelEnsembling::Step;

// Returns the error for steps none of which has all of its inputs: naming a tensor that no step
// makes, where there is one, else one that a step waits for.
absl::Status Unmade(const std::vector<const Step*>& left, const std::set<std::string>& made) {
  std::set<std::string> to_come;
  for (const Step* step : left) {
    for (const auto& [output, tensor] : step->output_map()) to_come.insert(tensor);
  }
  for (const bool waits : {false, true}) {
    for (const Step* step : left) {
      for (const auto& [input, tensor] : step->input_map()) {
        if (made.contains(tensor) || to_come.contains(tensor) != waits) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "ensemble_scheduling: the input '", input, "' of step '", step->model_name(),
            "' is tensor '", tensor, "', which no input is and no step before it makes"));
      }
    }
  }
  return absl::OkStatus();  // not reached: a step that is left lacks an input
}

// Returns the steps in an order in which each comes after those that make its inputs.
absl::StatusOr<std::vector<const Step*>> InOrder(const inference::ModelConfig& config) {
  std::set<std::string> made;
  for (const auto& input : config.input()) made.insert(input.name());
  std::vector<const Step*> left, order;
  for (const Step& step : config.ensemble_scheduling().step()) left.push_back(&step);
  while (!left.empty()) {
    const auto ready = std::find_if(left.begin(), left.end(), [&](const Step* step) {
      return std::all_of(step->input_map().begin(), step->input_map().end(),
                         [&](const auto& map) { return made.contains(map.second); });
    });
    if (ready == left.end()) return Unmade(left, made);
    for (const auto& [output, tensor] : (*ready)->output_map()) made.insert(tensor);
    order.push_back(*ready);
    left.erase(ready);
  }
  return order;
}

// Adds the usual purpose of ensembles: a model takes texts and pictures itself, and answers labels
// and boxes.
absl::Status WithAdvice(const absl::Status& status) {
  return absl::Status(
      status.code(),
      absl::StrCat(
          status.message(),
          " (the steps of an ensemble are ONNX models of the repositories; tokenizer, model "
          "and post-processing are one model here: its folder with model.onnx, "
          "tokenizer.json or preprocessor_config.json, and config.json)"));
}

// Returns the part of the merged model that `step` is.
absl::StatusOr<ModelPart> PartOf(const Step& step, const std::string& label,
                                 const FindModelFileOf& file_of) {
  absl::StatusOr<onnx::ModelProto> read = absl::UnknownError("not read");
  const absl::StatusOr<std::string> path = file_of(step.model_name(), step.model_version());
  if (path.ok()) read = ReadWholeModel(*path);
  if (!path.ok() || !read.ok()) {
    const absl::Status& why = path.ok() ? read.status() : path.status();
    return WithAdvice(absl::Status(
        why.code(),
        absl::StrCat("ensemble_scheduling: step '", step.model_name(), "': ", why.message())));
  }
  onnx::ModelProto model = *std::move(read);
  ModelPart part = {.label = label, .model = std::move(model)};
  part.inputs.insert(step.input_map().begin(), step.input_map().end());
  part.outputs.insert(step.output_map().begin(), step.output_map().end());
  const onnx::GraphProto& graph = part.model.graph();
  std::set<std::string> initializers;
  for (const auto& one : graph.initializer()) initializers.insert(one.name());
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (initializers.contains(input.name()) || part.inputs.contains(input.name())) continue;
    return absl::InvalidArgumentError(absl::StrCat("ensemble_scheduling: the input_map of step '",
                                                   step.model_name(), "' leaves out its input '",
                                                   input.name(), "'"));
  }
  // Outputs that no map names are left out.
  for (const onnx::ValueInfoProto& output : graph.output()) {
    part.outputs.try_emplace(output.name(), absl::StrCat(label, "/unused/", output.name()));
  }
  return part;
}

bool IsSafetensors(absl::string_view bytes) {
  uint64_t header = 0;
  if (bytes.size() < sizeof(header) + 1) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header <= bytes.size() - sizeof(header) && bytes[sizeof(header)] == '{';
}

Shape ShapeOf(const onnx::TensorProto& tensor) {
  return Shape(tensor.dims().begin(), tensor.dims().end());
}

absl::Status ReplaceWeights(absl::string_view bytes, onnx::ModelProto& model) {
  ASSIGN_OR_RETURN(const auto tensors, ReadSafetensors(bytes));
  if (tensors.empty()) return absl::InvalidArgumentError("the weights hold no tensor");
  std::map<std::string, onnx::TensorProto*> initializers;
  for (onnx::TensorProto& one : *model.mutable_graph()->mutable_initializer()) {
    initializers[one.name()] = &one;
  }
  for (const auto& [name, tensor] : tensors) {
    const auto found = initializers.find(name);
    if (found == initializers.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the weights hold '", name, "', which is no initialiser of the model"));
    }
    onnx::TensorProto& old = *found->second;
    if (old.data_type() != onnx::TensorProto::FLOAT || ShapeOf(old) != tensor.shape()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", name, "' is float32", ShapeToString(tensor.shape()), " in the weights, ",
          onnx::TensorProto::DataType_Name(
              static_cast<onnx::TensorProto::DataType>(old.data_type())),
          ShapeToString(ShapeOf(old)), " in the model"));
    }
    old.clear_float_data();
    old.set_raw_data(tensor.data(), tensor.bytes());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImportedModel> ImportEnsemble(const inference::ModelConfig& config,
                                             const FindModelFileOf& file_of) {
  if (file_of == nullptr) {
    return absl::UnimplementedError("an ensemble is served from a model repository");
  }
  ASSIGN_OR_RETURN(const std::vector<const Step*> steps, InOrder(config));
  std::vector<ModelPart> parts;
  std::map<std::string, int> times;
  for (const Step* step : steps) {
    const int before = times[step->model_name()]++;
    const std::string label =
        before == 0 ? step->model_name() : absl::StrCat(step->model_name(), "_", before + 1);
    ASSIGN_OR_RETURN(parts.emplace_back(), PartOf(*step, label, file_of));
  }
  std::vector<std::string> outputs;
  for (const auto& output : config.output()) outputs.push_back(output.name());
  ASSIGN_OR_RETURN(const onnx::ModelProto merged, MergeModels(parts, outputs));
  return ImportOnnxBytes(merged.SerializeAsString());
}

absl::StatusOr<ImportedModel> ImportWithWeights(const std::string& path,
                                                const NewWeights& weights) {
  if (!IsSafetensors(*weights.bytes)) return ImportOnnxBytes(*weights.bytes);
  ASSIGN_OR_RETURN(onnx::ModelProto model, ReadWholeModel(path));
  RETURN_IF_ERROR(ReplaceWeights(*weights.bytes, model));
  return ImportOnnxBytes(model.SerializeAsString());
}

absl::Status CheckGraph(const NewWeights& weights, const GraphFingerprint& graph) {
  if (weights.bytes == nullptr) return absl::OkStatus();
  const GraphFingerprint& before = weights.graph;
  if (before.hash == graph.hash && *before.text == *graph.text) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the new weights are of another graph: its nodes, the shapes of its weights or its constants "
      "differ, so that no recipe could stay (load the model from its folder instead)");
}

}  // namespace reprise

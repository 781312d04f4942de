#include "server/hub/dense_file.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/hub/folder_members.h"
#include "server/hub/json_file.h"
#include "server/hub/safetensors.h"
#include "server/hub/sentence_modules.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostDenseBytes = int64_t{1} << 30;

// model.safetensors of `folder`.
absl::StatusOr<std::map<std::string, Tensor>> ReadWeights(const fs::path& path) {
  ASSIGN_OR_RETURN(const std::optional<std::string> bytes, ReadFileIfThere(path, kMostDenseBytes));
  if (!bytes.has_value()) {
    return absl::UnimplementedError(absl::StrCat(
        path.string(),
        " is missing; pytorch_model.bin is not read: save the model with safetensors"));
  }
  auto tensors = ReadSafetensors(*bytes);
  if (tensors.ok()) return tensors;
  return absl::Status(tensors.status().code(),
                      absl::StrCat(path.string(), ": ", tensors.status().message()));
}

// Returns the tensor `name` of `rank`.
absl::StatusOr<Tensor> WantTensor(const std::map<std::string, Tensor>& tensors,
                                  const fs::path& path, const char* name, size_t rank) {
  const auto found = tensors.find(name);
  if (found != tensors.end() && found->second.shape().size() == rank) return found->second;
  return absl::InvalidArgumentError(
      absl::StrCat(path.string(), " has no ", rank == 2 ? "matrix" : "vector", " \"", name, "\""));
}

absl::Status CheckSize(const nlohmann::json& json, const std::string& file, const char* member,
                       const fs::path& weights, int64_t size) {
  const int64_t said = IntMember(json, member, size);
  if (said == size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": ", member, " is ", said, ", ", weights.string(), " has ", size));
}

// Takes the bias, where there is one, as config.json says too.
absl::Status TakeBias(const std::map<std::string, Tensor>& tensors, const nlohmann::json& json,
                      const std::string& file, const fs::path& weights, DenseLayer& layer) {
  const auto bias = tensors.find("linear.bias");
  const bool there = bias != tensors.end();
  if (BoolMember(json, "bias", there) != there) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": bias is ", there ? "false" : "true",
                                                   ", ", weights.string(), " has ",
                                                   there ? "a" : "no", " \"linear.bias\""));
  }
  if (!there) return absl::OkStatus();
  const int64_t out = layer.weight.shape()[0];
  if (bias->second.shape() != Shape{out}) {
    return absl::InvalidArgumentError(absl::StrCat(weights.string(), ": \"linear.bias\" has shape ",
                                                   ShapeToString(bias->second.shape()),
                                                   ", the weight has ", out, " rows"));
  }
  layer.bias = bias->second;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DenseLayer> ReadDense(const fs::path& folder, const char* usual_input) {
  const std::string file = (folder / "config.json").string();
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(file));
  RETURN_IF_ERROR(CheckMembers("Dense/config.json", file, json));
  DenseLayer layer{.folder = folder.filename().string()};
  if (const std::string name = TextMember(json, "activation_function", ""); !name.empty()) {
    ASSIGN_OR_RETURN(layer.activation, ParseActivation(name, file, "activation_function"));
  }
  const fs::path weights = folder / "model.safetensors";
  ASSIGN_OR_RETURN(const auto tensors, ReadWeights(weights));
  ASSIGN_OR_RETURN(layer.weight, WantTensor(tensors, weights, "linear.weight", 2));
  const int64_t out = layer.weight.shape()[0], in = layer.weight.shape()[1];
  RETURN_IF_ERROR(TakeBias(tensors, json, file, weights, layer));
  RETURN_IF_ERROR(CheckSize(json, file, "in_features", weights, in));
  RETURN_IF_ERROR(CheckSize(json, file, "out_features", weights, out));
  layer.adds_input = BoolMember(json, "use_residual", false);
  if (layer.adds_input && in != out) {
    ASSIGN_OR_RETURN(layer.residual, WantTensor(tensors, weights, "residual.weight", 2));
    if (layer.residual.shape() != layer.weight.shape()) {
      return absl::InvalidArgumentError(
          absl::StrCat(weights.string(), ": \"residual.weight\" has shape ",
                       ShapeToString(layer.residual.shape()), ", \"linear.weight\" has ",
                       ShapeToString(layer.weight.shape())));
    }
  }
  layer.input = TextMember(json, "module_input_name", usual_input);
  layer.output = TextMember(json, "module_output_name", layer.input);
  return layer;
}

absl::StatusOr<LayerNormStep> ReadLayerNorm(const fs::path& folder) {
  const std::string file = (folder / "config.json").string();
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(file));
  RETURN_IF_ERROR(CheckMembers("LayerNorm/config.json", file, json));
  const fs::path weights = folder / "model.safetensors";
  ASSIGN_OR_RETURN(const auto tensors, ReadWeights(weights));
  LayerNormStep step{.folder = folder.filename().string()};
  ASSIGN_OR_RETURN(step.weight, WantTensor(tensors, weights, "norm.weight", 1));
  ASSIGN_OR_RETURN(step.bias, WantTensor(tensors, weights, "norm.bias", 1));
  if (step.bias.shape() != step.weight.shape()) {
    return absl::InvalidArgumentError(absl::StrCat(
        weights.string(), ": \"norm.bias\" has shape ", ShapeToString(step.bias.shape()),
        ", \"norm.weight\" has ", ShapeToString(step.weight.shape())));
  }
  RETURN_IF_ERROR(CheckSize(json, file, "dimension", weights, step.weight.shape()[0]));
  return step;
}

}  // namespace reprise

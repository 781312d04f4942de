#include "server/hub/sentence_modules.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "server/hub/json_file.h"
#include "server/hub/safetensors.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostDenseBytes = int64_t{1} << 30;

// The flags of 1_Pooling/config.json, in the order in which their vectors are joined.
constexpr std::pair<const char*, Pooling> kPoolingFlags[] = {
    {"pooling_mode_cls_token", Pooling::kCls},
    {"pooling_mode_max_tokens", Pooling::kMax},
    {"pooling_mode_mean_tokens", Pooling::kMean},
    {"pooling_mode_mean_sqrt_len_tokens", Pooling::kMeanSqrtLength},
    {"pooling_mode_weightedmean_tokens", Pooling::kWeightedMean},
    {"pooling_mode_lasttoken", Pooling::kLastToken},
};

// "sentence_transformers.models.Pooling" is "Pooling".
std::string LastName(const std::string& type) {
  const size_t dot = type.rfind('.');
  return dot == std::string::npos ? type : type.substr(dot + 1);
}

absl::Status ReadPooling(const fs::path& folder, TextPackage& package) {
  const std::string file = (folder / "config.json").string();
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(file));
  if (!json.is_object()) return absl::InvalidArgumentError(absl::StrCat(file, " is missing"));
  if (!package.poolings.empty()) {
    return absl::UnimplementedError(absl::StrCat(file, ": a second pooling is not supported"));
  }
  for (const auto& [name, pooling] : kPoolingFlags) {
    if (BoolMember(json, name, false)) package.poolings.push_back(pooling);
  }
  if (const std::string mode = TextMember(json, "pooling_mode", ""); !mode.empty()) {
    const std::optional<Pooling> pooling = ParsePooling(mode);
    if (!pooling) {
      return absl::UnimplementedError(
          absl::StrCat(file, ": pooling_mode \"", mode, "\" is not supported"));
    }
    package.poolings = {*pooling};
  }
  if (package.poolings.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(file, " names no pooling_mode that is known"));
  }
  if (!BoolMember(json, "include_prompt", true)) {
    return absl::UnimplementedError(absl::StrCat(
        file, ": include_prompt false (prompts that are not pooled) is not supported"));
  }
  package.pooled_width = IntMember(json, "word_embedding_dimension", 0);
  return absl::OkStatus();
}

absl::StatusOr<Activation> ParseActivation(const std::string& name, const std::string& file) {
  const std::string last = LastName(name);
  if (last == "Identity" || last == "Linear") return Activation::kIdentity;
  if (last == "Tanh" || last.empty()) return Activation::kTanh;
  if (last == "ReLU") return Activation::kRelu;
  if (last == "GELU") return Activation::kGelu;
  if (last == "Sigmoid") return Activation::kSigmoid;
  return absl::UnimplementedError(
      absl::StrCat(file, ": activation_function \"", name,
                   "\" is not supported (known: Identity, Tanh, ReLU, GELU, Sigmoid)"));
}

absl::Status ReadDense(const fs::path& folder, TextPackage& package) {
  const std::string file = (folder / "config.json").string();
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(file));
  DenseLayer layer{.folder = folder.filename().string()};
  ASSIGN_OR_RETURN(layer.activation,
                   ParseActivation(TextMember(json, "activation_function", ""), file));
  const fs::path weights = folder / "model.safetensors";
  ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                   ReadFileIfThere(weights, kMostDenseBytes));
  if (!bytes.has_value()) {
    return absl::UnimplementedError(absl::StrCat(
        weights.string(),
        " is missing; pytorch_model.bin is not read: save the model with safetensors"));
  }
  auto tensors = ReadSafetensors(*bytes);
  if (!tensors.ok()) {
    return absl::Status(tensors.status().code(),
                        absl::StrCat(weights.string(), ": ", tensors.status().message()));
  }
  const auto weight = tensors->find("linear.weight");
  if (weight == tensors->end() || weight->second.shape().size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(weights.string(), " has no matrix \"linear.weight\""));
  }
  layer.weight = weight->second;
  const int64_t out = layer.weight.shape()[0], in = layer.weight.shape()[1];
  if (const auto bias = tensors->find("linear.bias"); bias != tensors->end()) {
    if (bias->second.shape() != Shape{out}) {
      return absl::InvalidArgumentError(
          absl::StrCat(weights.string(), ": \"linear.bias\" has shape ",
                       ShapeToString(bias->second.shape()), ", the weight has ", out, " rows"));
    }
    layer.bias = bias->second;
  }
  for (const auto& [name, size] : {std::pair("in_features", in), std::pair("out_features", out)}) {
    const int64_t said = IntMember(json, name, size);
    if (said == size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", name, " is ", said, ", ", weights.string(), " has ", size));
  }
  package.dense.push_back(std::move(layer));
  return absl::OkStatus();
}

absl::Status ReadTransformer(const fs::path& folder, TextPackage& package) {
  for (const char* name : {"sentence_bert_config.json", "sentence_roberta_config.json",
                           "sentence_distilbert_config.json", "sentence_camembert_config.json",
                           "sentence_albert_config.json", "sentence_xlm-roberta_config.json",
                           "sentence_xlnet_config.json"}) {
    ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(folder / name));
    if (!json.is_object()) continue;
    package.lower_case = BoolMember(json, "do_lower_case", false);
    if (const int64_t most = IntMember(json, "max_seq_length", 0); most > 0) {
      package.max_tokens = most;
      package.max_tokens_from = name;
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status ReadPrompts(const fs::path& folder, TextPackage& package) {
  ASSIGN_OR_RETURN(const nlohmann::json json,
                   ReadJsonIfThere(folder / "config_sentence_transformers.json"));
  const auto prompts = json.is_object() ? json.find("prompts") : json.end();
  if (prompts != json.end() && prompts->is_object()) {
    for (const auto& [name, text] : prompts->items()) {
      if (text.is_string()) package.prompts[name] = text.get<std::string>();
    }
  }
  const std::string name = TextMember(json, "default_prompt_name", "");
  if (name.empty()) return absl::OkStatus();
  const auto prompt = package.prompts.find(name);
  if (prompt == package.prompts.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("config_sentence_transformers.json: default_prompt_name is \"", name,
                     "\", the prompts are ",
                     absl::StrJoin(package.prompts, ", ", [](std::string* out, const auto& each) {
                       absl::StrAppend(out, each.first);
                     })));
  }
  package.default_prompt = prompt->second;
  return absl::OkStatus();
}

// Each dense layer takes what comes before it.
absl::Status CheckWidths(const TextPackage& package) {
  int64_t width = package.pooled_width * static_cast<int64_t>(package.poolings.size());
  std::string from = "1_Pooling";
  for (const DenseLayer& layer : package.dense) {
    const int64_t in = layer.weight.shape()[1];
    if (width > 0 && width != in) {
      return absl::InvalidArgumentError(absl::StrCat(layer.folder, " takes vectors of ", in,
                                                     " elements, ", from, " makes ", width));
    }
    width = layer.weight.shape()[0];
    from = layer.folder;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadSentenceModules(const fs::path& folder, TextPackage& package) {
  ASSIGN_OR_RETURN(const nlohmann::json modules, ReadJsonIfThere(folder / "modules.json"));
  if (modules.is_null()) return ReadTransformer(folder, package);
  if (!modules.is_array()) return absl::InvalidArgumentError("modules.json is no list");
  package.sentence_transformer = true;
  for (const nlohmann::json& module : modules) {
    const std::string type = LastName(TextMember(module, "type", ""));
    const fs::path path = folder / TextMember(module, "path", "");
    if (type == "Transformer") {
      RETURN_IF_ERROR(ReadTransformer(path, package));
    } else if (type == "Pooling") {
      RETURN_IF_ERROR(ReadPooling(path, package));
    } else if (type == "Dense") {
      RETURN_IF_ERROR(ReadDense(path, package));
    } else if (type == "Normalize") {
      package.normalize = true;
    } else if (type != "Dropout") {
      return absl::UnimplementedError(absl::StrCat("modules.json: the module \"", type,
                                                   "\" is not supported (known: Transformer, "
                                                   "Pooling, Dense, Normalize, Dropout)"));
    }
  }
  RETURN_IF_ERROR(ReadPrompts(folder, package));
  return CheckWidths(package);
}

}  // namespace reprise

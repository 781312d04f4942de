#include "server/hub/sentence_modules.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "server/hub/dense_file.h"
#include "server/hub/folder_members.h"
#include "server/hub/json_file.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

// The flags of a pooling's config.json, in the order in which their vectors are joined.
constexpr std::pair<const char*, Pooling> kPoolingFlags[] = {
    {"pooling_mode_cls_token", Pooling::kCls},
    {"pooling_mode_max_tokens", Pooling::kMax},
    {"pooling_mode_mean_tokens", Pooling::kMean},
    {"pooling_mode_mean_sqrt_len_tokens", Pooling::kMeanSqrtLength},
    {"pooling_mode_weightedmean_tokens", Pooling::kWeightedMean},
    {"pooling_mode_lasttoken", Pooling::kLastToken},
};

constexpr std::pair<const char*, Similarity> kSimilarities[] = {
    {"cosine", Similarity::kCosine},
    {"dot", Similarity::kDot},
    {"euclidean", Similarity::kEuclidean},
    {"manhattan", Similarity::kManhattan},
};

constexpr char kDenseOfPylate[] = "pylate.models.Dense.Dense";

// "sentence_transformers.models.Pooling" is "Pooling".
std::string LastName(const std::string& type) {
  const size_t dot = type.rfind('.');
  return dot == std::string::npos ? type : type.substr(dot + 1);
}

// Returns the poolings that `json` names: pooling_mode, else the flags.
absl::StatusOr<std::vector<Pooling>> PoolingsOf(const nlohmann::json& json,
                                                const std::string& file) {
  std::vector<Pooling> poolings;
  if (const auto mode = json.find("pooling_mode"); mode != json.end() && !mode->is_null()) {
    const nlohmann::json list = mode->is_array() ? *mode : nlohmann::json::array({*mode});
    for (const nlohmann::json& each : list) {
      const std::optional<Pooling> pooling =
          each.is_string() ? ParsePooling(each.get<std::string>()) : std::nullopt;
      if (!pooling) {
        return absl::UnimplementedError(
            absl::StrCat(file, ": pooling_mode ", each.dump(), " is not supported"));
      }
      poolings.push_back(*pooling);
    }
  } else {
    bool named = false;
    for (const auto& [name, pooling] : kPoolingFlags) {
      named = named || json.contains(name);
      if (BoolMember(json, name, false)) poolings.push_back(pooling);
    }
    // As sentence-transformers reads it.
    if (named && poolings.empty()) poolings = {Pooling::kMean};
  }
  if (!poolings.empty()) return poolings;
  return absl::InvalidArgumentError(absl::StrCat(file, " names no pooling_mode that is known"));
}

absl::StatusOr<PoolingStep> ReadPooling(const fs::path& folder) {
  const std::string file = (folder / "config.json").string();
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(file));
  if (json.is_null()) return absl::InvalidArgumentError(absl::StrCat(file, " is missing"));
  RETURN_IF_ERROR(CheckMembers("Pooling/config.json", file, json));
  PoolingStep step{.folder = folder.filename().string()};
  ASSIGN_OR_RETURN(step.poolings, PoolingsOf(json, file));
  step.width =
      IntMember(json, "embedding_dimension", IntMember(json, "word_embedding_dimension", 0));
  return step;
}

absl::StatusOr<NormalizeStep> ReadNormalize(const fs::path& folder) {
  const std::string file = (folder / "config.json").string();
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(file));
  RETURN_IF_ERROR(CheckMembers("Normalize/config.json", file, json));
  NormalizeStep step{.folder = folder.filename().string()};
  step.input = TextMember(json, "module_input_name", kTextVectors);
  step.output = TextMember(json, "module_output_name", step.input);
  return step;
}

absl::StatusOr<SpladeStep> ReadSplade(const fs::path& folder) {
  const std::string file = (folder / "config.json").string();
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(file));
  RETURN_IF_ERROR(CheckMembers("SpladePooling/config.json", file, json));
  return SpladeStep{.folder = folder.filename().string(),
                    .sums = TextMember(json, "pooling_strategy", "max") == "sum",
                    .log_twice = TextMember(json, "activation_function", "relu") == "log1p_relu",
                    .width = IntMember(json, "embedding_dimension",
                                       IntMember(json, "word_embedding_dimension", 0))};
}

// Reads the output of the model that counts for texts, as `modality_config` says: {"text":
// {"method": "forward", "method_output_name": "last_hidden_state"}}.
absl::Status ReadModality(const nlohmann::json& json, const std::string& file,
                          TextPackage& package) {
  const std::string task = TextMember(json, "transformer_task", "");
  const bool scores = task == "sequence-classification";
  if (task == "fill-mask") package.vectors_output = "logits";
  package.vectors_name = TextMember(json, "module_output_name", scores ? kScores : kTokenVectors);
  const auto modality = json.is_object() ? json.find("modality_config") : json.end();
  if (modality == json.end() || modality->is_null()) return absl::OkStatus();
  const auto text = modality->find("text");
  if (text == modality->end()) {
    return absl::UnimplementedError(
        absl::StrCat(file, ": modality_config has no \"text\": ", modality->dump()));
  }
  const std::string method = TextMember(*text, "method", "");
  if (method != "forward") {
    return absl::UnimplementedError(absl::StrCat(file,
                                                 ": modality_config: the method of \"text\" is \"",
                                                 method, "\", forward is supported"));
  }
  const auto name = text->find("method_output_name");
  const bool listed = name != text->end() && name->is_array() && name->size() == 1;
  const nlohmann::json output = name == text->end() ? nlohmann::json()
                                : listed            ? (*name)[0]
                                                    : *name;
  if (!output.is_string()) {
    return absl::UnimplementedError(
        absl::StrCat(file, ": modality_config: the method_output_name of \"text\" is ",
                     output.dump(), ", the name of one output is supported"));
  }
  package.vectors_output = output.get<std::string>();
  return absl::OkStatus();
}

absl::Status ReadTransformer(const fs::path& folder, TextPackage& package) {
  for (const char* name : {"sentence_bert_config.json", "sentence_roberta_config.json",
                           "sentence_distilbert_config.json", "sentence_camembert_config.json",
                           "sentence_albert_config.json", "sentence_xlm-roberta_config.json",
                           "sentence_xlnet_config.json"}) {
    ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(folder / name));
    if (json.is_null()) continue;
    RETURN_IF_ERROR(CheckMembers("sentence_bert_config.json", name, json));
    if (package.tokenizer) package.tokenizer->lower_case = BoolMember(json, "do_lower_case", false);
    // PyLate leaves there the length of the text that it saw last; each side has its own.
    const bool has_sides = package.late && package.late->of_pylate;
    if (const int64_t most = IntMember(json, "max_seq_length", 0); most > 0 && !has_sides) {
      package.max_tokens = most;
      package.max_tokens_from = name;
    }
    RETURN_IF_ERROR(ReadLateTransformer(json, name, package));
    return ReadModality(json, name, package);
  }
  return absl::OkStatus();
}

absl::Status ReadPrompts(const nlohmann::json& json, TextPackage& package) {
  const auto prompts = json.find("prompts");
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
  if (package.cross_encoder && !prompt->second.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("config_sentence_transformers.json: default_prompt_name is \"", name,
                     "\", and prompts of a cross encoder are not supported"));
  }
  package.default_prompt = prompt->second;
  return absl::OkStatus();
}

absl::Status ReadSentenceConfig(const fs::path& folder, TextPackage& package) {
  constexpr char kFile[] = "config_sentence_transformers.json";
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(folder / kFile));
  if (json.is_null()) return absl::OkStatus();
  // The kind of model first: others have members of their own.
  if (const std::string type = TextMember(json, "model_type", ""); !type.empty()) {
    RETURN_IF_ERROR(CheckMembers(kFile, kFile, {{"model_type", type}}));
    package.cross_encoder = type == "CrossEncoder";
    package.sparse = type == "SparseEncoder";
  }
  if (package.sparse) package.similarity = Similarity::kDot;
  RETURN_IF_ERROR(CheckMembers(kFile, kFile, json));
  RETURN_IF_ERROR(ReadPrompts(json, package));
  RETURN_IF_ERROR(ReadLateConfig(json, package));
  package.most_words = IntMember(json, "max_active_dims", 0);
  const std::string similarity = TextMember(json, "similarity_fn_name", "");
  for (const auto& [name, value] : kSimilarities) {
    if (similarity == name) package.similarity = value;
  }
  package.truncate_dim = IntMember(json, "truncate_dim", 0);
  if (package.truncate_dim < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kFile, ": truncate_dim is ", package.truncate_dim));
  }
  if (const std::string name = TextMember(json, "activation_fn", ""); !name.empty()) {
    ASSIGN_OR_RETURN(package.score_activation, ParseActivation(name, kFile, "activation_fn"));
  }
  return absl::OkStatus();
}

absl::Status ReadModule(const nlohmann::json& module, const fs::path& folder,
                        TextPackage& package) {
  RETURN_IF_ERROR(CheckMembers("modules.json", "modules.json", module));
  const std::string type = TextMember(module, "type", "");
  const fs::path path = folder / TextMember(module, "path", "");
  const std::string name = LastName(type);
  // Files of late interaction may leave out that a layer reads the vectors of tokens.
  const bool of_pylate = type == kDenseOfPylate;
  if (of_pylate || (package.late && name == "Dense")) {
    ASSIGN_OR_RETURN(package.steps.emplace_back(), ReadDense(path, kTokenVectors));
    return absl::OkStatus();
  }
  if (!absl::StartsWith(type, "sentence_transformers.")) {
    return absl::UnimplementedError(
        absl::StrCat("modules.json: the module \"", type,
                     "\" is not supported: it is none of sentence_transformers"));
  }
  if (name == "Transformer") return ReadTransformer(path, package);
  if (name == "MLMTransformer") {
    package.vectors_output = "logits";
    return ReadTransformer(path, package);
  }
  if (name == "MultiVectorMask") return ReadVectorMask(path, package);
  if (name == "Pooling") {
    ASSIGN_OR_RETURN(package.steps.emplace_back(), ReadPooling(path));
  } else if (name == "Dense") {
    ASSIGN_OR_RETURN(package.steps.emplace_back(), ReadDense(path, kTextVectors));
  } else if (name == "Normalize") {
    ASSIGN_OR_RETURN(package.steps.emplace_back(), ReadNormalize(path));
  } else if (name == "LayerNorm") {
    ASSIGN_OR_RETURN(package.steps.emplace_back(), ReadLayerNorm(path));
  } else if (name == "SpladePooling") {
    package.sparse = true;
    ASSIGN_OR_RETURN(package.steps.emplace_back(), ReadSplade(path));
  } else if (name != "Dropout") {
    return absl::UnimplementedError(
        absl::StrCat("modules.json: the module \"", name,
                     "\" is not supported (known: Transformer, MLMTransformer, Pooling, "
                     "SpladePooling, Dense, Normalize, LayerNorm, MultiVectorMask, Dropout)"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Activation> ParseActivation(const std::string& name, const std::string& file,
                                           const char* member) {
  const std::string last = absl::StartsWith(name, "torch.") ? LastName(name) : "";
  if (last == "Identity") return Activation::kIdentity;
  if (last == "Tanh") return Activation::kTanh;
  if (last == "ReLU") return Activation::kRelu;
  if (last == "GELU") return Activation::kGelu;
  if (last == "Sigmoid") return Activation::kSigmoid;
  return absl::UnimplementedError(
      absl::StrCat(file, ": ", member, " \"", name,
                   "\" is not supported (known: Identity, Tanh, ReLU, GELU, Sigmoid of torch)"));
}

absl::Status ReadSentenceModules(const fs::path& folder, TextPackage& package) {
  RETURN_IF_ERROR(ReadSentenceConfig(folder, package));
  ASSIGN_OR_RETURN(const nlohmann::json modules, ReadJsonIfThere(folder / "modules.json"));
  if (modules.is_null()) return ReadTransformer(folder, package);
  if (!modules.is_array()) return absl::InvalidArgumentError("modules.json is not a list");
  package.sentence_transformer = true;
  for (const nlohmann::json& module : modules) {
    RETURN_IF_ERROR(ReadModule(module, folder, package));
  }
  if (package.late && package.late->of_pylate) {
    package.steps.emplace_back(NormalizeStep{.folder = "config_sentence_transformers.json",
                                             .input = kTokenVectors,
                                             .output = kTokenVectors});
  }
  if (package.steps.empty()) return absl::OkStatus();
  return WidthAfter(package.steps, package.vectors_name, 0, package.vectors_name).status();
}

}  // namespace reprise

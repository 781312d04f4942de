#include "server/hub/text_package.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/gguf/gguf_file.h"
#include "server/hub/chat_templates.h"
#include "server/hub/folder_members.h"
#include "server/hub/gguf_package.h"
#include "server/hub/json_file.h"
#include "server/hub/model_file.h"
#include "server/hub/sentence_modules.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostTokenizerBytes = int64_t{256} << 20;
// A length that was not set: 10^30 in tokenizer_config.json, or the largest of 64 bits.
constexpr int64_t kLongestContext = 100'000'000;

// Files that hold a tokenizer, the first that is there counts.
struct TokenizerFile {
  const char* name;
  TokenizerKind kind;
};
constexpr TokenizerFile kTokenizerFiles[] = {
    {"tokenizer.json", TokenizerKind::kJson},
    {"spiece.model", TokenizerKind::kSentencePiece},
    {"sentencepiece.bpe.model", TokenizerKind::kSentencePiece},
    {"tokenizer.model", TokenizerKind::kSentencePiece},
    {"spm.model", TokenizerKind::kSentencePiece},
    {"vocab.txt", TokenizerKind::kVocabTxt},
    {"vocab.json", TokenizerKind::kVocabAndMerges},
};

// Models of RoBERTa's kind: their positions begin after the padding id, so that fewer tokens fit.
bool PositionsBeginAfterPadding(const std::string& type) {
  for (const char* name :
       {"roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod", "camembert",
        "mpnet", "longformer", "esm", "data2vec-text", "ibert", "lilt", "layoutlmv3", "luke",
        "markuplm", "bridgetower_text_model", "clap_text_model", "altclip_text_model"}) {
    if (type == name) return true;
  }
  return false;
}

// Reads the files next to the tokenizer's, for the facts that the tokenizer does not need.
absl::Status ReadTokenizerConfig(const fs::path& folder, TextPackage& package) {
  TokenizerFiles& files = *package.tokenizer;
  const bool alone = files.kind != TokenizerKind::kJson;
  for (const auto& [name, text] : {std::pair("tokenizer_config.json", &files.config),
                                   std::pair("special_tokens_map.json", &files.special_tokens_map),
                                   std::pair("added_tokens.json", &files.added_tokens),
                                   std::pair("config.json", &files.model_config)}) {
    ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(folder / name));
    RETURN_IF_ERROR(CheckMembers(name, name, json, alone));
    if (json.is_null()) continue;
    *text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  return absl::OkStatus();
}

absl::Status ReadTokenizer(const fs::path& folder, TextPackage& package) {
  for (const TokenizerFile& file : kTokenizerFiles) {
    ASSIGN_OR_RETURN(std::optional<std::string> data,
                     ReadFileIfThere(folder / file.name, kMostTokenizerBytes));
    if (!data.has_value()) continue;
    TokenizerFiles files{.kind = file.kind, .data = *std::move(data)};
    if (file.kind == TokenizerKind::kVocabAndMerges) {
      ASSIGN_OR_RETURN(std::optional<std::string> merges,
                       ReadFileIfThere(folder / "merges.txt", kMostTokenizerBytes));
      if (!merges.has_value()) continue;
      files.merges = *std::move(merges);
    }
    package.tokenizer = std::move(files);
    package.tokenizer_file = file.name;
    return ReadTokenizerConfig(folder, package);
  }
  return absl::OkStatus();
}

void TakeLimit(int64_t tokens, const char* from, TextPackage& package) {
  if (tokens <= 0 || tokens > kLongestContext) return;
  if (package.max_tokens > 0 && package.max_tokens <= tokens) return;
  package.max_tokens = tokens;
  package.max_tokens_from = from;
}

absl::Status ReadLimits(const fs::path& folder, const nlohmann::json& config,
                        TextPackage& package) {
  int64_t positions = IntMember(config, "max_position_embeddings", 0);
  package.padding_id = std::max<int64_t>(0, IntMember(config, "pad_token_id", 0));
  if (PositionsBeginAfterPadding(TextMember(config, "model_type", ""))) {
    package.padding_id = std::max<int64_t>(0, IntMember(config, "pad_token_id", 1));
    package.first_position = package.padding_id + 1;
    positions -= package.first_position;
  }
  // The length that a sentence transformer names is the author's, and holds if positions allow it.
  TakeLimit(positions, "config.json", package);
  ASSIGN_OR_RETURN(const nlohmann::json tokenizer,
                   ReadJsonIfThere(folder / "tokenizer_config.json"));
  if (const auto names = tokenizer.find("model_input_names");
      names != tokenizer.end() && names->is_array()) {
    package.token_types = std::find(names->begin(), names->end(), "token_type_ids") != names->end();
  }
  TakeLimit(IntMember(tokenizer, "model_max_length", 0), "tokenizer_config.json", package);
  return absl::OkStatus();
}

absl::Status ReadLabels(const nlohmann::json& config, TextPackage& package) {
  const auto labels = config.find("id2label");
  if (labels == config.end() || !labels->is_object()) return absl::OkStatus();
  package.labels.resize(labels->size());
  std::vector<bool> seen(labels->size());
  for (const auto& [id, label] : labels->items()) {
    size_t place = 0;
    if (!absl::SimpleAtoi(id, &place) || place >= seen.size() || seen[place] ||
        !label.is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat("config.json: id2label has the entry \"", id, "\", of ", seen.size(),
                       " labels whose ids are to be 0 to ", seen.size() - 1));
    }
    seen[place] = true;
    package.labels[place] = label.get<std::string>();
  }
  return absl::OkStatus();
}

absl::Status ReadConfig(const nlohmann::json& config, TextPackage& package) {
  if (!config.is_object()) return absl::OkStatus();
  const auto architectures = config.find("architectures");
  if (architectures != config.end() && architectures->is_array() && !architectures->empty() &&
      (*architectures)[0].is_string()) {
    package.architecture = (*architectures)[0].get<std::string>();
  }
  RETURN_IF_ERROR(ReadLabels(config, package));
  // They are labels of the transformer, and its modules make other outputs.
  if (package.cross_encoder && !package.steps.empty()) package.labels.clear();
  const std::string problem = TextMember(config, "problem_type", "");
  package.multi_label = problem == "multi_label_classification";
  package.regression = problem == "regression";
  if (package.score_activation.has_value()) return absl::OkStatus();
  // Older cross encoders name the activation of a score here.
  const char* member = "sbert_ce_default_activation_function";
  std::string activation = TextMember(config, member, "");
  if (const auto nested = config.find("sentence_transformers"); nested != config.end()) {
    const std::string newer = TextMember(*nested, "activation_fn", "");
    if (!newer.empty()) member = "activation_fn", activation = newer;
  }
  if (activation.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(package.score_activation, ParseActivation(activation, "config.json", member));
  return absl::OkStatus();
}

// Returns the folder with the files that belong to the model, at most two above it: model.onnx
// lies in `onnx`, or in the folder of a version.
fs::path PackageFolder(const fs::path& model_file) {
  fs::path folder = ResolveModelFile(model_file).parent_path();
  for (int i = 0; i < 3 && !folder.empty(); ++i) {
    std::error_code error;
    for (const char* name : {"modules.json", "config.json"}) {
      if (fs::exists(folder / name, error)) return folder;
    }
    for (const TokenizerFile& file : kTokenizerFiles) {
      if (fs::exists(folder / file.name, error)) return folder;
    }
    // Above any other folder lies something else.
    const std::string name = folder.filename().string();
    int64_t version = 0;
    if (name != "onnx" && !absl::EndsWith(name, ".onnx") && !absl::SimpleAtoi(name, &version))
      break;
    folder = folder.parent_path();
  }
  return ResolveModelFile(model_file).parent_path();
}

}  // namespace

void OverridePooling(Pooling pooling, TextPackage& package) {
  for (HeadStep& step : package.steps) {
    if (auto* found = std::get_if<PoolingStep>(&step)) {
      found->poolings = {pooling};
      return;
    }
  }
  package.steps.push_back(PoolingStep{.poolings = {pooling}, .folder = "reprise.pooling"});
}

void OverrideBySplade(TextPackage& package) {
  package.sparse = true;
  package.steps = {SpladeStep{.folder = "reprise.pooling"}};
  package.vectors_name = kTokenVectors;
  package.vectors_output = "logits";
  package.truncate_dim = 0;
}

void OverrideByTokens(TextPackage& package) {
  package.token_vectors = true;
  package.cross_encoder = package.sparse = false;
  package.truncate_dim = 0;
  std::erase_if(package.steps, [](const HeadStep& step) {
    const auto* dense = std::get_if<DenseLayer>(&step);
    const auto* normalize = std::get_if<NormalizeStep>(&step);
    const bool of_tokens = (dense != nullptr && dense->output == kTokenVectors) ||
                           (normalize != nullptr && normalize->output == kTokenVectors);
    return !of_tokens;
  });
}

absl::StatusOr<TextPackage> ReadTextPackage(const fs::path& model_file) {
  if (GgufFile::IsOne(model_file.string())) return ReadGgufPackage(model_file);
  TextPackage package;
  const fs::path folder = PackageFolder(model_file);
  RETURN_IF_ERROR(ReadTokenizer(folder, package));
  // First: a module that is not supported, as Router, may keep the tokenizer in a folder of its
  // own.
  RETURN_IF_ERROR(ReadSentenceModules(folder, package));
  if (!package.tokenizer.has_value()) return package;
  ASSIGN_OR_RETURN(const nlohmann::json config, ReadJsonIfThere(folder / "config.json"));
  RETURN_IF_ERROR(ReadConfig(config, package));
  RETURN_IF_ERROR(ReadLimits(folder, config, package));
  RETURN_IF_ERROR(ReadChatTemplates(folder, package));
  package.speech = ReadSpeechFiles(folder);
  return package;
}

}  // namespace reprise

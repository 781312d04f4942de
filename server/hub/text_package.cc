#include "server/hub/text_package.h"

#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/hub/json_file.h"
#include "server/hub/model_file.h"
#include "server/hub/sentence_modules.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostTokenizerBytes = int64_t{256} << 20;
// A length that nobody set: 10^30 in tokenizer_config.json, or the largest of 64 bits.
constexpr int64_t kLongestContext = 100'000'000;

constexpr std::pair<Pooling, const char*> kPoolingNames[] = {
    {Pooling::kCls, "cls"},
    {Pooling::kMax, "max"},
    {Pooling::kMean, "mean"},
    {Pooling::kMeanSqrtLength, "mean_sqrt_len_tokens"},
    {Pooling::kWeightedMean, "weightedmean"},
    {Pooling::kLastToken, "lasttoken"},
};

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

// Models whose positions begin behind the padding id, so that two fewer tokens fit.
bool PositionsBeginBehindPadding(const std::string& type) {
  for (const char* name : {"roberta", "xlm-roberta", "camembert", "mpnet", "longformer", "esm",
                           "xlm-roberta-xl", "data2vec-text", "ibert"}) {
    if (type == name) return true;
  }
  return false;
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
    ASSIGN_OR_RETURN(const std::optional<std::string> config,
                     ReadFileIfThere(folder / "tokenizer_config.json", kMostTokenizerBytes));
    files.config = config.value_or("");
    package.tokenizer = std::move(files);
    package.tokenizer_file = file.name;
    return absl::OkStatus();
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
  if (PositionsBeginBehindPadding(TextMember(config, "model_type", ""))) {
    positions -= IntMember(config, "pad_token_id", 1) + 1;
  }
  // The length that a sentence transformer names is the author's, and holds if positions allow it.
  TakeLimit(positions, "config.json", package);
  ASSIGN_OR_RETURN(const nlohmann::json tokenizer,
                   ReadJsonIfThere(folder / "tokenizer_config.json"));
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
  package.multi_label = TextMember(config, "problem_type", "") == "multi_label_classification";
  // A cross encoder says here that its scores are not to be squashed.
  std::string activation = TextMember(config, "sbert_ce_default_activation_function", "");
  if (const auto nested = config.find("sentence_transformers"); nested != config.end()) {
    activation = TextMember(*nested, "activation_fn", activation);
  }
  package.raw_scores = absl::EndsWith(activation, "Identity");
  return absl::OkStatus();
}

// The folder with the files that belong to the model, at most two above it: model.onnx lies in
// `onnx`, or in the folder of a version.
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

const char* PoolingName(Pooling pooling) {
  for (const auto& [value, name] : kPoolingNames) {
    if (value == pooling) return name;
  }
  return "";
}

std::optional<Pooling> ParsePooling(const std::string& name) {
  for (const auto& [value, known] : kPoolingNames) {
    if (name == known) return value;
  }
  if (name == "last" || name == "last-token") return Pooling::kLastToken;
  return std::nullopt;
}

absl::StatusOr<TextPackage> ReadTextPackage(const fs::path& model_file) {
  TextPackage package;
  const fs::path folder = PackageFolder(model_file);
  RETURN_IF_ERROR(ReadTokenizer(folder, package));
  if (!package.tokenizer.has_value()) return package;
  RETURN_IF_ERROR(ReadSentenceModules(folder, package));
  ASSIGN_OR_RETURN(const nlohmann::json config, ReadJsonIfThere(folder / "config.json"));
  RETURN_IF_ERROR(ReadConfig(config, package));
  RETURN_IF_ERROR(ReadLimits(folder, config, package));
  return package;
}

}  // namespace reprise

#include "server/hub/gguf_package.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/gguf/gguf_file.h"
#include "server/hub/gguf_tokenizer.h"

namespace reprise {
namespace {

// Members that name ids which end an answer.
constexpr const char* kEnds[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                 "tokenizer.ggml.eom_token_id"};
// Control tokens that end an answer or a turn, where a vocabulary has them.
constexpr const char* kEndTexts[] = {"<|eot_id|>",    "<|eom_id|>",    "<|im_end|>",     "<|end|>",
                                     "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>"};

absl::Status ReadTemplates(const GgufFile& file, TextPackage& package) {
  ASSIGN_OR_RETURN(const auto chat, file.Text("tokenizer.chat_template"));
  package.chat_template = chat.value_or("");
  ASSIGN_OR_RETURN(const std::vector<absl::string_view> names,
                   file.Texts("tokenizer.chat_templates"));
  for (const absl::string_view name : names) {
    const std::string key = absl::StrCat("tokenizer.chat_template.", name);
    ASSIGN_OR_RETURN(auto text, file.Text(key));
    if (!text.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("there is no member '", key, "'"));
    }
    package.chat_templates[std::string(name)] = *std::move(text);
  }
  for (const auto& [name, token] :
       {std::pair("bos", &package.bos_token), std::pair("eos", &package.eos_token),
        std::pair("padding", &package.pad_token), std::pair("unknown", &package.unk_token)}) {
    ASSIGN_OR_RETURN(const auto id, file.Int(absl::StrCat("tokenizer.ggml.", name, "_token_id")));
    if (id.has_value()) *token = GgufToken(file, *id);
    // Answers would not end.
    if (id.has_value() && token == &package.eos_token && token->empty()) {
      ASSIGN_OR_RETURN(const auto tokens, file.Texts("tokenizer.ggml.tokens"));
      return absl::InvalidArgumentError(absl::StrCat("member 'tokenizer.ggml.eos_token_id' is ",
                                                     *id, " of ", tokens.size(), " tokens"));
    }
    if (id.has_value() && token == &package.pad_token && !token->empty()) package.padding_id = *id;
  }
  return absl::OkStatus();
}

absl::Status ReadPooling(const GgufFile& file, const std::string& architecture,
                         TextPackage& package) {
  const std::string key = absl::StrCat(architecture, ".pooling_type");
  ASSIGN_OR_RETURN(const std::optional<int64_t> type, file.Int(key));
  if (!type.has_value() || *type == 0) return absl::OkStatus();
  static constexpr Pooling kPoolings[] = {Pooling::kMean, Pooling::kCls, Pooling::kLastToken};
  if (*type < 0 || *type > 3) {
    return absl::UnimplementedError(
        absl::StrCat("member '", key, "' is ", *type, "; 1 mean, 2 cls and 3 last are supported"));
  }
  package.sentence_transformer = true;
  package.steps.push_back(PoolingStep{.poolings = {kPoolings[*type - 1]}, .folder = key});
  package.steps.push_back(NormalizeStep{.folder = key});
  return absl::OkStatus();
}

absl::Status ReadPackage(const GgufFile& file, TextPackage& package) {
  ASSIGN_OR_RETURN(package.tokenizer, ReadGgufTokenizer(file));
  if (!package.tokenizer.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<std::string> architecture,
                   file.Text("general.architecture"));
  const std::string name = architecture.value_or("");
  package.tokenizer_file = file.files()[0].name;
  ASSIGN_OR_RETURN(const auto context, file.Int(absl::StrCat(name, ".context_length")));
  if (context.value_or(0) > 0) {
    package.max_tokens = *context;
    package.max_tokens_from = package.tokenizer_file;
  }
  package.token_types = file.Tensor("token_types.weight") != nullptr;
  RETURN_IF_ERROR(ReadTemplates(file, package));
  return ReadPooling(file, name, package);
}

}  // namespace

absl::StatusOr<TextPackage> ReadGgufPackage(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path.string()));
  TextPackage package;
  const absl::Status status = ReadPackage(file, package);
  if (status.ok()) return package;
  return absl::Status(status.code(),
                      absl::StrCat("GGUF file '", file.files()[0].name, "': ", status.message()));
}

GenerationFacts ReadGgufGeneration(const std::filesystem::path& path) {
  GenerationFacts facts;
  const absl::StatusOr<GgufFile> file = GgufFile::Open(path.string());
  if (!file.ok()) return facts;
  const auto add = [&](int64_t id) {
    if (std::find(facts.eos_ids.begin(), facts.eos_ids.end(), id) == facts.eos_ids.end()) {
      facts.eos_ids.push_back(id);
    }
  };
  const auto tokens = file->Texts("tokenizer.ggml.tokens");
  const auto types = file->Ints("tokenizer.ggml.token_type");
  const int64_t size = tokens.ok() ? static_cast<int64_t>(tokens->size()) : 0;
  for (const char* key : kEnds) {
    const auto id = file->Int(key);
    if (id.ok() && id->has_value() && **id >= 0 && (size == 0 || **id < size)) add(**id);
  }
  if (!tokens.ok() || !types.ok() || types->size() != tokens->size()) return facts;
  for (size_t id = 0; id < tokens->size(); ++id) {
    if ((*types)[id] != kControlToken) continue;
    for (const char* text : kEndTexts) {
      if ((*tokens)[id] == text) add(static_cast<int64_t>(id));
    }
  }
  return facts;
}

}  // namespace reprise

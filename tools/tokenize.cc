// reprise tokenize: the tokens of texts, by the tokenizer of a model's folder. Needs no server.

#include "tools/tokenize.h"

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "runtime/base/status_macros.h"
#include "server/chat/conversation.h"
#include "server/hub/model_file.h"
#include "server/hub/text_package.h"
#include "server/text/chat_template.h"
#include "server/text/text_stream.h"
#include "server/text/tokenizer.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::json;

struct TokenizeFlags {
  std::string path;
  std::vector<std::string> texts;
  bool json = false;
  bool no_special = false;
  bool decode = false;
  bool parts = false;
  bool chat = false;
  int64_t max_tokens = 0;
  std::string truncate = "none";
};

EncodeOptions OptionsOf(const TokenizeFlags& flags) {
  return {.add_special = !flags.no_special,
          .offsets = Offsets::kChars,
          .truncation = flags.truncate == "right"  ? Truncation::kRight
                        : flags.truncate == "left" ? Truncation::kLeft
                                                   : Truncation::kNone,
          .max_bytes = 0,
          .max_tokens = flags.max_tokens};
}

void PrintTokens(const Tokenizer& tokenizer, const TextTokens& tokens) {
  std::vector<std::string> words;
  for (const uint32_t id : tokens.ids) words.push_back(tokenizer.Token(id));
  std::printf("%s\n%s\n", absl::StrJoin(tokens.ids, " ").c_str(),
              absl::StrJoin(words, " ").c_str());
}

Json TokensJson(const TextTokens& tokens) {
  return {{"ids", tokens.ids},
          {"type_ids", tokens.type_ids},
          {"special", tokens.special},
          {"offsets", tokens.offsets}};
}

// Returns a line of JSON for a line of JSON: a text, a list of two that are a pair, or one of ids.
absl::StatusOr<Json> AnswerLine(const Tokenizer& tokenizer, const Json& line,
                                const TokenizeFlags& flags) {
  if (flags.decode) {
    std::vector<uint32_t> ids;
    for (const Json& id : line) {
      if (!id.is_number_unsigned())
        return absl::InvalidArgumentError("the line is not a list of ids");
      ids.push_back(id.get<uint32_t>());
    }
    if (!flags.parts) {
      ASSIGN_OR_RETURN(const std::string text, tokenizer.Decode(ids, flags.no_special));
      return Json(text);
    }
    Json parts = Json::array();
    TextStream stream(tokenizer, flags.no_special);
    for (const uint32_t id : ids) {
      ASSIGN_OR_RETURN(parts.emplace_back(), stream.Push(id));
    }
    ASSIGN_OR_RETURN(parts.emplace_back(), stream.Finish());
    return parts;
  }
  const bool pair =
      line.is_array() && line.size() == 2 && line[0].is_string() && line[1].is_string();
  if (!pair && !line.is_string()) {
    return absl::InvalidArgumentError("the line is neither a text nor a pair of texts");
  }
  const std::string text = (pair ? line[0] : line).get<std::string>();
  std::optional<std::string> second;
  if (pair) second = line[1].get<std::string>();
  ASSIGN_OR_RETURN(const TextTokens tokens, tokenizer.Encode(text, second, OptionsOf(flags)));
  return TokensJson(tokens);
}

// Returns the prompt of a conversation, by the templates of the folder.
absl::StatusOr<Json> PromptOfLine(const TextPackage& package, const std::string& line) {
  ASSIGN_OR_RETURN(const Conversation conversation, ReadConversation(line, /*with_tools=*/true));
  const auto tools = package.chat_templates.find("tool_use");
  const bool named = conversation.has_tools && tools != package.chat_templates.end();
  ASSIGN_OR_RETURN(const std::unique_ptr<ChatTemplate> chat,
                   ChatTemplate::Load(named ? tools->second : package.chat_template));
  ASSIGN_OR_RETURN(std::string prompt,
                   chat->Render(WithSpecialTokens(conversation, package), std::time(nullptr)));
  return Json(std::move(prompt));
}

absl::Status AnswerLines(const Tokenizer& tokenizer, const TextPackage& package,
                         const TokenizeFlags& flags) {
  std::string text;
  while (std::getline(std::cin, text)) {
    const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    absl::StatusOr<Json> answer =
        flags.chat ? PromptOfLine(package, text) : AnswerLine(tokenizer, line, flags);
    if (!answer.ok()) {
      answer = Json{{"error", std::string(answer.status().message())},
                    {"code", absl::StatusCodeToString(answer.status().code())}};
    }
    std::printf("%s\n",
                answer->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }
  return absl::OkStatus();
}

absl::Status RunTokenize(const TokenizeFlags& flags) {
  // Any name in the folder does: the files next to it are looked for.
  std::filesystem::path path(flags.path);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const auto file = FindModelFile(path, "");
    path /= file.ok() ? *file : "model.onnx";
  }
  ASSIGN_OR_RETURN(const TextPackage package, ReadTextPackage(path));
  if (!package.tokenizer.has_value()) {
    return absl::NotFoundError(absl::StrCat(flags.path, " has no tokenizer"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Load(*package.tokenizer));
  if (flags.json && flags.texts.empty()) return AnswerLines(*tokenizer, package, flags);
  std::vector<std::string> texts = flags.texts;
  for (std::string line; flags.texts.empty() && std::getline(std::cin, line);) {
    texts.push_back(line);
  }
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(const TextTokens tokens,
                     tokenizer->Encode(text, std::nullopt, OptionsOf(flags)));
    if (flags.json) {
      std::printf("%s\n", TokensJson(tokens).dump().c_str());
    } else {
      PrintTokens(*tokenizer, tokens);
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AddTokenize(CLI::App& app, Action& action) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* command = app.add_subcommand(
      "tokenize", "Show the tokens of texts, by the tokenizer of a model's folder; no server");
  command->footer("Without texts each line of the input is one.");
  AddOption(*command, "folder", flags->path, "FOLDER", "Folder of the model, or its model.onnx")
      ->required();
  AddOption(*command, "text", flags->texts, "TEXT", "Texts");
  command->add_flag(
      "--json", flags->json,
      "Answer lines of JSON with ids, types and offsets in characters; without texts each "
      "line of the input is a JSON text, or a list of two that are a pair");
  command->add_flag("--no-special", flags->no_special, "Leave special tokens out");
  command->add_flag("--decode", flags->decode,
                    "With --json: lines are lists of ids, answers texts");
  command->add_flag("--parts", flags->parts,
                    "With --decode: answers are lists of the parts that a stream tells");
  command->add_flag("--chat", flags->chat,
                    "With --json: lines are conversations, {\"messages\": [...], \"tools\": ...}; "
                    "answers are their prompts by the chat template");
  command->add_option("--max-tokens", flags->max_tokens, "The most tokens of a text; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--truncate", flags->truncate, "Cut longer ones: right, left or none")
      ->check(CLI::IsMember({"none", "right", "left"}));
  command->callback([flags, &action] { action = [flags] { return RunTokenize(*flags); }; });
}

}  // namespace reprise::cli

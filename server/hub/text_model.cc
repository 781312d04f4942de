#include "server/hub/text_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// Positions count tokens, from `first`. Those of RoBERTa's kind leave padding out, whose position
// is its id.
std::vector<int64_t> Positions(const TokenInput& input, const TextTokens& tokens) {
  std::vector<int64_t> positions;
  positions.reserve(tokens.ids.size());
  int64_t next = input.first_position;
  for (const uint32_t id : tokens.ids) {
    const bool counts = input.first_position == 0 || id != input.padding;
    positions.push_back(counts ? next++ : input.padding);
  }
  return positions;
}

// Returns the values of `input` for the tokens of a row.
std::vector<int64_t> RowValues(const TokenInput& input, const TextTokens& tokens) {
  if (input.name == "input_ids") return {tokens.ids.begin(), tokens.ids.end()};
  if (input.name == "position_ids") return Positions(input, tokens);
  if (input.name == "attention_mask") {
    std::vector<int64_t> mask(tokens.ids.size(), 1);
    std::fill(mask.end() - tokens.unattended, mask.end(), 0);
    return mask;
  }
  if (!input.types || tokens.type_ids.empty()) return std::vector<int64_t>(tokens.ids.size(), 0);
  return {tokens.type_ids.begin(), tokens.type_ids.end()};
}

template <typename T>
std::string ValuesAs(const TokenInput& input, const std::vector<const TextTokens*>& rows,
                     int64_t length) {
  std::string bytes(rows.size() * static_cast<size_t>(length) * sizeof(T), '\0');
  char* out = bytes.data();
  for (const TextTokens* row : rows) {
    std::vector<int64_t> values = RowValues(input, *row);
    values.resize(static_cast<size_t>(length), input.padding);
    for (const int64_t each : values) {
      const T value = static_cast<T>(each);
      std::memcpy(out, &value, sizeof(T));
      out += sizeof(T);
    }
  }
  return bytes;
}

// `input` filled as the folder says.
TokenInput TokenInputOf(const ModelIo& input, const TextPackage& package) {
  TokenInput made{.name = input.name, .dtype = input.dtype, .types = package.token_types};
  if (input.name == "input_ids") made.padding = package.padding_id;
  if (input.name == "position_ids") {
    made.first_position = package.first_position;
    if (made.first_position > 0) made.padding = package.padding_id;
  }
  return made;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TextModel>> TextModel::Make(TextPackage package,
                                                                 TextOffer offer,
                                                                 const std::vector<ModelIo>& inputs,
                                                                 const TextLimits& limits) {
  std::shared_ptr<TextModel> model(new TextModel());
  ASSIGN_OR_RETURN(model->tokenizer_, Tokenizer::Load(*package.tokenizer));
  if (package.late) {
    model->package_.late = package.late;
    RETURN_IF_ERROR(model->LoadSides(*package.tokenizer));
  }
  package.tokenizer.emplace();  // its files are no longer needed
  model->LoadChats(package);
  if (package.speech.ok() && package.speech->has_value()) {
    CompleteSpeechFacts(*model->tokenizer_, **package.speech);
  }
  model->package_ = std::move(package);
  model->offer_ = std::move(offer);
  model->limits_ = limits;
  for (const ModelIo& input : inputs) {
    if (IsTokenInput(input)) model->inputs_.push_back(TokenInputOf(input, model->package_));
  }
  return model;
}

absl::Status TextModel::LoadSides(const TokenizerFiles& files) {
  const LateFacts& facts = *package_.late;
  ASSIGN_OR_RETURN(const std::string filler, FillerOf(facts, files, *tokenizer_));
  ASSIGN_OR_RETURN(document_, SideTokens::Make(facts.document, filler, *tokenizer_));
  ASSIGN_OR_RETURN(query_, SideTokens::Make(facts.query, filler, *tokenizer_));
  return absl::OkStatus();
}

const SideTokens* TextModel::SideOf(const std::optional<TextSide>& side) const {
  if (!side || !document_) return nullptr;
  return *side == TextSide::kQuery ? &*query_ : &*document_;
}

int64_t TextModel::KeepRows(TextSide side, absl::Span<const uint32_t> ids,
                            std::vector<float>& values) const {
  const SideTokens* tokens = SideOf(side);
  return tokens == nullptr ? static_cast<int64_t>(ids.size()) : tokens->KeepRows(ids, values);
}

void TextModel::LoadChats(const TextPackage& package) {
  const auto tools = package.chat_templates.find("tool_use");
  const std::string& usual = package.chat_template;
  chat_ = usual.empty() ? absl::StatusOr<std::unique_ptr<ChatTemplate>>(
                              absl::FailedPreconditionError("the model has no chat template: its "
                                                            "folder names none"))
                        : ChatTemplate::Load(usual);
  tool_chat_ = nullptr;
  if (tools != package.chat_templates.end()) tool_chat_ = ChatTemplate::Load(tools->second);
}

absl::StatusOr<const ChatTemplate*> TextModel::Chat(bool with_tools) const {
  const auto& chosen =
      with_tools && (!tool_chat_.ok() || *tool_chat_ != nullptr) ? tool_chat_ : chat_;
  RETURN_IF_ERROR(chosen.status());
  return chosen->get();
}

absl::StatusOr<const Grammars*> TextModel::GrammarsOf(const std::vector<int64_t>& eos,
                                                      int64_t vocabulary) const {
  MutexLock lock(mutex_);
  if (!grammars_.ok()) grammars_ = Grammars::Make(*tokenizer_, eos, vocabulary);
  RETURN_IF_ERROR(grammars_.status());
  return grammars_->get();
}

absl::Status TextModel::Offers(TextTask task) const {
  if (offer_.task == TextTask::kNone) return offer_.refusal;
  if (task == TextTask::kNone || task == offer_.task) return absl::OkStatus();
  const bool could = offer_.task == TextTask::kEmbed && task == TextTask::kTokens;
  return absl::FailedPreconditionError(absl::StrCat(
      "the model offers ", TextTaskName(offer_.task), ", not ", TextTaskName(task), ": ",
      offer_.why, could ? "; the parameter reprise.pooling, \"tokens\", answers these" : ""));
}

absl::StatusOr<TextTokens> TextModel::Encode(absl::string_view text,
                                             std::optional<absl::string_view> pair,
                                             const TextQuestion& question) const {
  ASSIGN_OR_RETURN(TextTokens tokens, tokenizer_->Encode(text, pair, OptionsOf(question)));
  if (tokens.ids.empty()) return absl::InvalidArgumentError("the text has no tokens");
  if (const SideTokens* side = SideOf(question.side)) side->Complete(tokens);
  return tokens;
}

absl::StatusOr<FirstTokens> TextModel::EncodeFirst(absl::string_view text,
                                                   const TextQuestion& question) const {
  return tokenizer_->EncodeFirst(text, OptionsOf(question));
}

absl::StatusOr<TextTokens> TextModel::EncodePair(const FirstTokens& first, absl::string_view pair,
                                                 const TextQuestion& question) const {
  ASSIGN_OR_RETURN(TextTokens tokens, tokenizer_->EncodePair(first, pair, OptionsOf(question)));
  if (tokens.ids.empty()) return absl::InvalidArgumentError("the text has no tokens");
  return tokens;
}

EncodeOptions TextModel::OptionsOf(const TextQuestion& question) const {
  const SideTokens* side = SideOf(question.side);
  return {
      .add_special = question.add_special,
      .offsets = question.offsets,
      .truncation = question.truncation,
      .max_bytes = limits_.max_bytes,
      .max_tokens = side == nullptr ? package_.max_tokens : side->MostTokens(package_.max_tokens),
      .most_tokens = limits_.most_tokens,
      .go_on = question.go_on};
}

absl::StatusOr<TextTokens> TextModel::Take(std::vector<uint32_t> ids,
                                           const TextQuestion& question) const {
  const auto count = static_cast<int64_t>(ids.size());
  if (count == 0) return absl::InvalidArgumentError("the list of ids is empty");
  const int64_t size = tokenizer_->size();
  for (const uint32_t id : ids) {
    if (id < size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the id ", id, " is out of range: the tokenizer has ", size));
  }
  if (limits_.most_tokens > 0 && count > limits_.most_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("a list has ", count, " ids, the limit is ", limits_.most_tokens));
  }
  const int64_t most = package_.max_tokens;
  if (most > 0 && count > most) {
    if (question.truncation == Truncation::kNone) {
      return absl::InvalidArgumentError(absl::StrCat("the list has ", count,
                                                     " ids, the model takes ", most,
                                                     "; ask for truncation or send less"));
    }
    if (tokenizer_->Resolve(question.truncation) == Truncation::kLeft) {
      ids.erase(ids.begin(), ids.end() - most);
    } else {
      ids.resize(most);
    }
  }
  TextTokens tokens{.full_count = count};
  tokens.type_ids.assign(ids.size(), 0);
  tokens.special.assign(ids.size(), false);
  tokens.ids = std::move(ids);
  return tokens;
}

std::string TextModel::Values(const TokenInput& input, const std::vector<const TextTokens*>& rows,
                              int64_t length) {
  return input.dtype == DType::kInt32 ? ValuesAs<int32_t>(input, rows, length)
                                      : ValuesAs<int64_t>(input, rows, length);
}

}  // namespace reprise

#include "server/hub/text_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr int64_t kContextsBeforeTruncation = 4;

int64_t ValueOf(const std::string& name, const TextTokens& tokens, int64_t place) {
  const auto size = static_cast<int64_t>(tokens.ids.size());
  if (name == "attention_mask") return place < size ? 1 : 0;
  if (place >= size) return 0;
  if (name == "input_ids") return tokens.ids[place];
  if (name == "position_ids") return place;
  return tokens.type_ids.empty() ? 0 : tokens.type_ids[place];
}

template <typename T>
std::string ValuesAs(const std::string& name, const std::vector<const TextTokens*>& rows,
                     int64_t length) {
  std::string bytes(rows.size() * static_cast<size_t>(length) * sizeof(T), '\0');
  char* out = bytes.data();
  for (const TextTokens* row : rows) {
    for (int64_t place = 0; place < length; ++place) {
      const T value = static_cast<T>(ValueOf(name, *row, place));
      std::memcpy(out, &value, sizeof(T));
      out += sizeof(T);
    }
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TextModel>> TextModel::Make(TextPackage package,
                                                                 TextOffer offer,
                                                                 const std::vector<ModelIo>& inputs,
                                                                 const TextLimits& limits) {
  std::shared_ptr<TextModel> model(new TextModel());
  ASSIGN_OR_RETURN(model->tokenizer_, Tokenizer::Load(*package.tokenizer));
  package.tokenizer->data = std::string();
  package.tokenizer->merges = std::string();
  model->package_ = std::move(package);
  model->offer_ = std::move(offer);
  model->limits_ = limits;
  if (limits.most_tokens == 0) {
    model->limits_.most_tokens = kContextsBeforeTruncation * model->package_.max_tokens;
  }
  for (const ModelIo& input : inputs) {
    if (IsTokenInput(input)) model->inputs_.push_back({input.name, input.dtype});
  }
  return model;
}

absl::Status TextModel::Offers(TextTask task) const {
  if (offer_.task == TextTask::kNone) return offer_.refusal;
  if (task == TextTask::kNone || task == offer_.task) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the model offers ", TextTaskName(offer_.task),
                                                    ", not ", TextTaskName(task), ": ",
                                                    offer_.why));
}

absl::StatusOr<TextTokens> TextModel::Encode(absl::string_view text,
                                             std::optional<absl::string_view> pair,
                                             const TextQuestion& question) const {
  std::string lower, lower_pair;
  if (package_.lower_case) {
    lower = absl::AsciiStrToLower(text);
    text = lower;
    if (pair) pair = lower_pair = absl::AsciiStrToLower(*pair);
  }
  ASSIGN_OR_RETURN(TextTokens tokens, tokenizer_->Encode(text, pair,
                                                         {.add_special = question.add_special,
                                                          .offsets = question.offsets,
                                                          .truncation = question.truncation,
                                                          .max_bytes = limits_.max_bytes,
                                                          .max_tokens = package_.max_tokens,
                                                          .most_tokens = limits_.most_tokens,
                                                          .time_ns = question.time_ns}));
  if (tokens.ids.empty()) return absl::InvalidArgumentError("the text has no tokens");
  return tokens;
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
    return absl::ResourceExhaustedError(
        absl::StrCat("a list has ", count, " ids, it may have ", limits_.most_tokens));
  }
  const int64_t most = package_.max_tokens;
  if (most > 0 && count > most) {
    if (question.truncation == Truncation::kNone) {
      return absl::InvalidArgumentError(absl::StrCat("the list has ", count,
                                                     " ids, the model takes ", most,
                                                     "; ask for truncation or send less"));
    }
    if (question.truncation == Truncation::kRight) ids.resize(most);
    if (question.truncation == Truncation::kLeft) ids.erase(ids.begin(), ids.end() - most);
  }
  TextTokens tokens{.full_count = count};
  tokens.type_ids.assign(ids.size(), 0);
  tokens.special.assign(ids.size(), false);
  tokens.ids = std::move(ids);
  return tokens;
}

std::string TextModel::Values(const TokenInput& input, const std::vector<const TextTokens*>& rows,
                              int64_t length) {
  return input.dtype == DType::kInt32 ? ValuesAs<int32_t>(input.name, rows, length)
                                      : ValuesAs<int64_t>(input.name, rows, length);
}

}  // namespace reprise

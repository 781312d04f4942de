#include "server/requests/token_inputs.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/go_on.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// Returns the share of texts of `bytes`. A text beyond its limit is refused before it takes memory.
absl::StatusOr<TextMemory::Share> WaitForMemory(const TextEncoding& encoding, size_t bytes) {
  const int64_t most = encoding.model.limits().max_bytes;
  return encoding.threads->memory().Wait(
      Tokenizer::BytesFor(std::min(static_cast<int64_t>(bytes), 2 * most)),
      encoding.question.go_on);
}

absl::StatusOr<TextTokens> PairTokensOf(const TextEncoding& encoding, absl::string_view text,
                                        absl::string_view pair, FirstTokens& first) {
  if (first == nullptr) {
    ASSIGN_OR_RETURN(const TextMemory::Share share, WaitForMemory(encoding, text.size()));
    ASSIGN_OR_RETURN(first, encoding.model.EncodeFirst(text, encoding.question));
  }
  const auto kept = static_cast<size_t>(Tokenizer::KeptTokens(first));
  ASSIGN_OR_RETURN(const TextMemory::Share share, WaitForMemory(encoding, pair.size() + kept));
  return encoding.model.EncodePair(first, pair, encoding.question);
}

absl::StatusOr<TextTokens> TokensOf(const TextEncoding& encoding, const TextSource& source) {
  const TextQuestion& question = encoding.question;
  RETURN_IF_ERROR(GoesOn(question.go_on));
  if (!source.ids.empty()) {
    return encoding.model.Take({source.ids.begin(), source.ids.end()}, question);
  }
  std::string prompted;
  absl::string_view text = source.text;
  if (!encoding.prompt.empty()) text = prompted = absl::StrCat(encoding.prompt, text);
  if (encoding.threads == nullptr) return encoding.model.Encode(text, source.pair, question);
  if (source.first != nullptr && source.pair) {
    return PairTokensOf(encoding, text, *source.pair, *source.first);
  }
  ASSIGN_OR_RETURN(const TextMemory::Share share,
                   WaitForMemory(encoding, text.size() + (source.pair ? source.pair->size() : 0)));
  return encoding.model.Encode(text, source.pair, question);
}

}  // namespace

absl::Status CheckTextCount(int64_t count) {
  if (count <= kMostTexts) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request has ", count, " texts, the limit is ", kMostTexts));
}

absl::StatusOr<EncodedText> EncodeText(const TextEncoding& encoding, const TextSource& source) {
  const int64_t start_ns = SteadyClock().NowNs();
  ASSIGN_OR_RETURN(TextTokens tokens, TokensOf(encoding, source));
  const int64_t end_ns = SteadyClock().NowNs(), took_ns = end_ns - start_ns;
  if (encoding.trace != nullptr) {
    WhereMemoryAllows([&] {
      encoding.trace->Add({.name = "tokenizer",
                           .start_ns = start_ns,
                           .end_ns = end_ns,
                           .attributes = {{"reprise.tokens", int64_t{std::ssize(tokens.ids)}}}});
    });
  }
  if (encoding.events != nullptr) {
    WhereMemoryAllows([&] {
      encoding.events->OnText({.tokens = std::ssize(tokens.ids),
                               .truncated = tokens.truncated(),
                               .tokenizer_ns = took_ns});
    });
  }
  return EncodedText{.tokens = std::move(tokens), .took_ns = took_ns};
}

void TokenInputs::Fill(const TextModel& model, const std::vector<const TextTokens*>& rows,
                       InferRequest& asked) {
  int64_t longest = 0;
  for (const TextTokens* row : rows) longest = std::max<int64_t>(longest, std::ssize(row->ids));
  shape = {static_cast<int64_t>(rows.size()), longest};
  bytes.reserve(model.inputs().size());
  asked.inputs.clear();
  for (const TokenInput& input : model.inputs()) {
    bytes.push_back(TextModel::Values(input, rows, longest));
    asked.inputs.push_back({.name = input.name,
                            .datatype = input.dtype == DType::kInt32 ? "INT32" : "INT64",
                            .shape = shape,
                            .bytes = bytes.back()});
  }
}

}  // namespace reprise

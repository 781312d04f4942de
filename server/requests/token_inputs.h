// From texts to the inputs of a request of ids: the one way, whichever protocol brought the texts.
//
// Threads: any; EncodeText computes, and waits for memory, so it runs on TextThreads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/hub/text_model.h"
#include "server/repository/events.h"
#include "server/requests/request.h"
#include "server/text/text_threads.h"

namespace reprise {

// The most texts of one request. More are INVALID_ARGUMENT with both numbers.
inline constexpr int64_t kMostTexts = 65'536;
absl::Status CheckTextCount(int64_t count);

// How the texts of a request become tokens.
struct TextEncoding {
  const TextModel& model;
  TextThreads* threads = nullptr;  // whose memory texts take; null: no account
  ModelEvents* events = nullptr;   // called for each text; may be null
  RequestTrace* trace = nullptr;   // has a span for each; null: none does
  absl::string_view prompt;        // put before each text
  TextQuestion question;
};

// A text or a pair of texts, or ids in their place where there are some.
struct TextSource {
  absl::string_view text;
  std::optional<absl::string_view> pair;
  absl::Span<const uint32_t> ids;
  // The tokens of `text`, with the prompt, for all pairs that have it: made where there are none.
  // Null: it is tokenized with the pair. Without offsets.
  FirstTokens* first = nullptr;
};

struct EncodedText {
  TextTokens tokens;
  int64_t took_ns = 0;
};

// Errors as of TextModel, and of the question's `go_on`.
absl::StatusOr<EncodedText> EncodeText(const TextEncoding& encoding, const TextSource& source);

// The memory of a request of ids, one row a text, padded to the longest; stays until the answer.
struct TokenInputs {
  std::vector<std::string> bytes;
  std::vector<int64_t> shape;

  // Makes the values, and lets `asked` point to them.
  void Fill(const TextModel& model, const std::vector<const TextTokens*>& rows,
            InferRequest& asked);
};

}  // namespace reprise

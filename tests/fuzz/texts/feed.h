// The tokenizer's interface as functions of bytes. What an answer promises is checked; a broken
// promise ends the process.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace reprise {

// The first byte says which kind of file the rest is; a vocabulary takes its merges behind a zero
// byte. The status is that of the load; what loads is asked for a few texts.
absl::Status FeedTokenizerFile(absl::string_view bytes);

// The first four bytes choose the tokenizer, truncation, offsets, a limit of tokens and whether
// there is a pair, which begins behind the first zero byte.
absl::Status FeedText(absl::string_view bytes);

}  // namespace reprise

// The tokenizer's interface as functions of bytes. The promises of an answer are checked; a broken
// promise ends the process.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace reprise {

// Loads a tokenizer: the first byte says which kind of file the rest is; a vocabulary takes its
// merges after a zero byte. Returns the status of the load; a tokenizer that loads is run on a few
// texts.
absl::Status FeedTokenizerFile(absl::string_view bytes);

// Tokenizes a text: the first four bytes choose the tokenizer, truncation, offsets, a limit of
// tokens and whether there is a pair, which begins after the first zero byte.
absl::Status FeedText(absl::string_view bytes);

}  // namespace reprise

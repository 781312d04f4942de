// TextStream: the text of ids that come one after another.
//
// The parts joined are the text of all ids decoded at once, to the byte. A part ends where no later
// id can change it: a letter whose bytes are several tokens comes whole.
//
// Threads: one at a time. The tokenizer outlives it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text/tokenizer.h"

namespace reprise {

class TextStream {
 public:
  // `skip_special`: special tokens are not part of the text.
  TextStream(const Tokenizer& tokenizer, bool skip_special);

  // Returns the part that `id` completes; it may be empty. Errors as of Tokenizer::Decode.
  absl::StatusOr<std::string> Push(uint32_t id);
  // Returns the rest: an incomplete letter is U+FFFD.
  absl::StatusOr<std::string> Finish();

 private:
  // Returns the text of the window that was not told yet; `all`: also the part that may change.
  absl::StatusOr<std::string> Next(bool all);

  const Tokenizer& tokenizer_;
  const bool skip_special_;
  const bool has_byte_tokens_;  // "<0x0A>": a run of them is decoded together
  // The ids whose text depends on each other: told ones, then those that were not.
  std::vector<uint32_t> window_;
  size_t told_ = 0;
};

}  // namespace reprise

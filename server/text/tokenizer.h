// Tokenizer: texts as ids and ids as texts, exactly as the crate `tokenizers` does it.
//
// Truncation and padding that a tokenizer.json asks for are switched off: the caller says how many
// tokens a model takes, and a text with more is an error unless the caller asks to cut it.
//
// Threads: Encode, Decode and the rest may run on several threads at once.
// Limits:  a call takes no more memory than its limit says, which grows with the text, and asks
//          `go_on` while it works; without memory it is RESOURCE_EXHAUSTED.
//
//   ASSIGN_OR_RETURN(auto tokenizer, Tokenizer::Load({.kind = TokenizerKind::kJson, .data =
//   json})); ASSIGN_OR_RETURN(TextTokens tokens, tokenizer->Encode("a text", std::nullopt,
//   {.max_tokens = 512}));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

struct reprise_first;
struct reprise_tokenizer;

namespace reprise {

enum class TokenizerKind { kJson, kVocabTxt, kSentencePiece, kVocabAndMerges };

// The contents of the files that are one tokenizer.
struct TokenizerFiles {
  TokenizerKind kind = TokenizerKind::kJson;
  std::string data;    // tokenizer.json, vocab.txt, the sentencepiece model, or vocab.json
  std::string merges;  // merges.txt, for kVocabAndMerges
  // The files next to it; each may be empty.
  std::string config;              // tokenizer_config.json
  std::string added_tokens;        // added_tokens.json
  std::string special_tokens_map;  // special_tokens_map.json
  std::string model_config;        // config.json
  bool lower_case = false;         // texts are lowered first, as Python's str.lower does it
};

// kBySide: the end that the tokenizer's files name, the right one where they name none.
enum class Truncation { kNone, kRight, kLeft, kBySide };
enum class Offsets { kNone, kBytes, kChars };

struct EncodeOptions {
  bool add_special = true;  // [CLS], [SEP] and their like
  Offsets offsets = Offsets::kNone;
  Truncation truncation = Truncation::kNone;
  int64_t max_bytes = int64_t{1} << 20;  // each text's
  int64_t max_tokens = 0;                // the result's; 0: no limit
  int64_t most_tokens = 0;               // those before truncation; 0: no limit
  // Asked every millisecond or less, from the calling thread: OK, or the error that ends the call.
  // Null: it goes on to its end.
  std::function<absl::Status()> go_on = nullptr;
};

struct TextTokens {
  std::vector<uint32_t> ids;
  std::vector<uint32_t> type_ids;                    // 1: of the second text
  std::vector<bool> special;                         // does not appear in texts
  std::vector<std::pair<int64_t, int64_t>> offsets;  // [begin, end) in the text; empty if unasked
  int64_t full_count = 0;  // tokens before truncation, as far as they had to be counted
  int64_t unattended = 0;  // tokens at the end that have 0 in the attention mask

  bool truncated() const { return full_count > static_cast<int64_t>(ids.size()); }
};

// The first text of several pairs as tokens: see Tokenizer::EncodeFirst.
struct FreeFirstTokens {
  void operator()(const reprise_first* first) const;
};
using FirstTokens = std::unique_ptr<const reprise_first, FreeFirstTokens>;

class Tokenizer {
 public:
  // Returns the memory that one text may take while it becomes tokens: some hundred times its
  // bytes, at the most.
  static int64_t BytesFor(int64_t text_bytes);

  // Errors: INVALID_ARGUMENT naming the file; UNIMPLEMENTED naming a class of tokenizers that is
  // not known, or a member of a file; RESOURCE_EXHAUSTED for a file of more than 256 MiB, and for
  // one whose loading takes more time or memory than its size may.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const TokenizerFiles& files);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Errors: INVALID_ARGUMENT for a text that is not UTF-8, has more bytes or tokens than
  // `options` allow, or needs more memory than its size may; errors of `go_on`; INTERNAL where
  // the library fails.
  absl::StatusOr<TextTokens> Encode(absl::string_view text, std::optional<absl::string_view> pair,
                                    const EncodeOptions& options) const;
  // Returns the first text of pairs, which is tokenized once for all of them. Errors as of Encode.
  absl::StatusOr<FirstTokens> EncodeFirst(absl::string_view text,
                                          const EncodeOptions& options) const;
  // Returns the most of its tokens that a pair keeps.
  static int64_t KeptTokens(const FirstTokens& first);
  // Returns the tokens of the pair as Encode makes them of both texts with the same `options`,
  // which ask for no offsets; `first` is of this tokenizer.
  absl::StatusOr<TextTokens> EncodePair(const FirstTokens& first, absl::string_view pair,
                                        const EncodeOptions& options) const;
  // Ids that the vocabulary lacks are left out. `go_on` as in EncodeOptions.
  absl::StatusOr<std::string> Decode(absl::Span<const uint32_t> ids, bool skip_special,
                                     const std::function<absl::Status()>& go_on = nullptr) const;

  // Returns the token as the vocabulary writes it ("##ing"); empty where there is none.
  std::string Token(uint32_t id) const;
  // Returns the bytes that the token stands for in a text, which may be a part of a letter ("
  // ing").
  std::string Bytes(uint32_t id) const;
  // Returns whether it is a special token, which does not appear in texts.
  bool IsSpecial(uint32_t id) const;
  std::optional<uint32_t> Id(absl::string_view token) const;
  // Returns the number of tokens, added ones included.
  int64_t size() const { return size_; }
  // kBySide as kLeft or kRight; others as they are.
  Truncation Resolve(Truncation truncation) const;
  // Returns the mark of tokens that go on with a word ("##"); empty where the tokenizer has none.
  std::string ContinuingPrefix() const;
  // Returns the token for unknown text; empty where there is none.
  std::string UnknownToken() const;
  // For other uses of the library, in this folder alone.
  const reprise_tokenizer* library() const { return tokenizer_; }

 private:
  explicit Tokenizer(reprise_tokenizer* tokenizer);

  // Constant after construction.
  reprise_tokenizer* const tokenizer_;
  const int64_t size_;  // the library copies its vocabulary to count it
};

}  // namespace reprise

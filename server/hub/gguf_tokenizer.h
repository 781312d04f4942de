// The tokenizer of a GGUF file as the files that a model's folder would have: a tokenizer.json made
// of its vocabulary, or a vocab.txt.
//
// tokenizer.ggml.model says which: "gpt2" is BPE of bytes, with the words of the pre-tokenizer that
// tokenizer.ggml.pre names; "llama" sentencepiece's BPE; "t5" sentencepiece's Unigram; "bert"
// WordPiece.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/onnx/gguf/gguf_file.h"
#include "server/text/tokenizer.h"

namespace reprise {

// Types of tokens (tokenizer.ggml.token_type).
enum GgufTokenType : int64_t {
  kNormalToken = 1,
  kUnknownToken,
  kControlToken,
  kUserDefinedToken,
  kUnusedToken,
  kByteToken,
};

// Returns nothing where the file has no tokenizer. UNIMPLEMENTED naming a kind or a pre-tokenizer
// that is not known, INVALID_ARGUMENT naming a member that is missing or contradicts another.
absl::StatusOr<std::optional<TokenizerFiles>> ReadGgufTokenizer(const GgufFile& file);

// Returns the text of token number `id`; "" where there is none.
std::string GgufToken(const GgufFile& file, int64_t id);

}  // namespace reprise

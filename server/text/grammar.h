// Grammar: which tokens may follow in a text that a JSON schema, a pattern or a Lark grammar
// allows.
//
// Grammars shares the vocabulary among all grammars of a tokenizer; making one takes some 100 ms.
// A Grammar that was compiled is copied for each answer.
//
// Threads: Grammars may be used by several at once, a Grammar by one at a time.
// Limits:  a grammar that is too large, or whose masks take too long, is INVALID_ARGUMENT.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/text/tokenizer.h"

struct reprise_grammars;
struct reprise_grammar;

namespace reprise {

enum class GrammarKind { kJsonSchema, kRegex, kLark, kChoice };

// A grammar as a client writes it; of kChoice a JSON list of texts.
struct GrammarText {
  GrammarKind kind = GrammarKind::kJsonSchema;
  std::string text;
};

class Grammar {
 public:
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  absl::StatusOr<std::unique_ptr<Grammar>> Copy() const;
  // Sets bit i % 32 of word i / 32 where token i may follow.
  absl::Status Mask(absl::Span<uint32_t> bits);
  // `id` follows, which the mask allows. Returns whether the text is complete.
  absl::StatusOr<bool> Take(uint32_t id);

 private:
  friend class Grammars;
  explicit Grammar(reprise_grammar* grammar) : grammar_(grammar) {}

  reprise_grammar* const grammar_;
};

class Grammars {
 public:
  // `eos`: ids that end an answer. `vocabulary`: the ids that the model has scores for.
  static absl::StatusOr<std::unique_ptr<Grammars>> Make(const Tokenizer& tokenizer,
                                                        const std::vector<int64_t>& eos,
                                                        int64_t vocabulary);
  ~Grammars();
  Grammars(const Grammars&) = delete;
  Grammars& operator=(const Grammars&) = delete;

  // `go_on`: see EncodeOptions. Errors: INVALID_ARGUMENT naming the fault.
  absl::StatusOr<std::unique_ptr<Grammar>> Compile(
      const GrammarText& text, const std::function<absl::Status()>& go_on) const;
  int64_t vocabulary() const { return vocabulary_; }

 private:
  Grammars(reprise_grammars* grammars, int64_t vocabulary)
      : grammars_(grammars), vocabulary_(vocabulary) {}

  reprise_grammars* const grammars_;
  const int64_t vocabulary_;
};

}  // namespace reprise

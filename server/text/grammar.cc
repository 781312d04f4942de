#include "server/text/grammar.h"

#include "runtime/base/status_macros.h"
#include "server/text/closed_schema.h"
#include "server/text/library_call.h"

namespace reprise {
namespace {

// A vocabulary of 256,000 tokens takes some 30 MB as a trie with its slices.
constexpr int64_t kVocabularyBytes = int64_t{1} << 30;
// The states of a grammar's lexer are the part that grows.
constexpr int64_t kGrammarBytes = int64_t{256} << 20;

const std::function<absl::Status()> kNoEnd;

}  // namespace

absl::StatusOr<std::unique_ptr<Grammars>> Grammars::Make(const Tokenizer& tokenizer,
                                                         const std::vector<int64_t>& eos,
                                                         int64_t vocabulary) {
  std::vector<uint32_t> ids;
  for (const int64_t id : eos) {
    if (id >= 0 && id < vocabulary) ids.push_back(static_cast<uint32_t>(id));
  }
  const LibraryWatch watch(kVocabularyBytes, kNoEnd);
  reprise_grammars* grammars = nullptr;
  LibraryText error;
  const int32_t code =
      reprise_grammars_make(tokenizer.library(), ids.data(), ids.size(),
                            static_cast<size_t>(vocabulary), watch.get(), &grammars, &error.text);
  RETURN_IF_ERROR(watch.StatusOf(code, error));
  return std::unique_ptr<Grammars>(new Grammars(grammars, vocabulary));
}

Grammars::~Grammars() { reprise_grammars_free(grammars_); }

absl::StatusOr<std::unique_ptr<Grammar>> Grammars::Compile(
    const GrammarText& text, const std::function<absl::Status()>& go_on) const {
  const LibraryWatch watch(kGrammarBytes, go_on);
  reprise_grammar* grammar = nullptr;
  LibraryText error;
  const std::string read =
      text.kind == GrammarKind::kJsonSchema ? ClosedSchema(text.text) : text.text;
  const int32_t code =
      reprise_grammar_compile(grammars_, static_cast<int32_t>(text.kind), read.data(), read.size(),
                              watch.get(), &grammar, &error.text);
  RETURN_IF_ERROR(watch.StatusOf(code, error));
  return std::unique_ptr<Grammar>(new Grammar(grammar));
}

Grammar::~Grammar() { reprise_grammar_free(grammar_); }

absl::StatusOr<std::unique_ptr<Grammar>> Grammar::Copy() const {
  const LibraryWatch watch(kGrammarBytes, kNoEnd);
  reprise_grammar* copy = nullptr;
  LibraryText error;
  const int32_t code = reprise_grammar_copy(grammar_, watch.get(), &copy, &error.text);
  RETURN_IF_ERROR(watch.StatusOf(code, error));
  return std::unique_ptr<Grammar>(new Grammar(copy));
}

absl::Status Grammar::Mask(absl::Span<uint32_t> bits) {
  const LibraryWatch watch(kGrammarBytes, kNoEnd);
  LibraryText error;
  const int32_t code =
      reprise_grammar_mask(grammar_, bits.data(), bits.size(), watch.get(), &error.text);
  return watch.StatusOf(code, error);
}

absl::StatusOr<bool> Grammar::Take(uint32_t id) {
  const LibraryWatch watch(kGrammarBytes, kNoEnd);
  int32_t complete = 0;
  LibraryText error;
  const int32_t code = reprise_grammar_take(grammar_, id, watch.get(), &complete, &error.text);
  RETURN_IF_ERROR(watch.StatusOf(code, error));
  return complete != 0;
}

}  // namespace reprise

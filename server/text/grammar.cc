#include "server/text/grammar.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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

// The least integer is its own negative, by which the library would count down without end. Doubles
// next to it are rounded to it.
constexpr char kLeastText[] = "-9223372036854774784";
constexpr double kLeast = -9223372036854774784.0;
constexpr char kSchemaInLark[] = "%json";

// Refuses a schema with a number that the library cannot take. Texts in it are passed over.
absl::Status CheckNumbers(absl::string_view schema) {
  constexpr char kOfNumbers[] = "+-.eE0123456789";
  for (size_t at = 0; at < schema.size(); ++at) {
    if (schema[at] == '"') {
      for (++at; at < schema.size() && schema[at] != '"'; ++at) {
        if (schema[at] == '\\') ++at;
      }
    } else if (schema[at] == '-') {
      const size_t end = std::min(schema.find_first_not_of(kOfNumbers, at), schema.size());
      const absl::string_view number = schema.substr(at, end - at);
      double value = 0;
      if (absl::SimpleAtod(number, &value) && value < kLeast) {
        return absl::InvalidArgumentError(
            absl::StrCat("the grammar has the number ", number, ", and the least is ", kLeastText));
      }
      at = end - 1;
    }
  }
  return absl::OkStatus();
}

// Returns the text that the library compiles.
absl::StatusOr<std::string> TextOf(const GrammarText& grammar) {
  const absl::string_view text = grammar.text;
  if (grammar.kind == GrammarKind::kLark) {
    const size_t schema = text.find(kSchemaInLark);
    if (schema != absl::string_view::npos) {
      RETURN_IF_ERROR(CheckNumbers(text.substr(schema)));
    }
  }
  if (grammar.kind != GrammarKind::kJsonSchema) return grammar.text;
  RETURN_IF_ERROR(CheckNumbers(text));
  return ClosedSchema(grammar.text);
}

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
  ASSIGN_OR_RETURN(const std::string read, TextOf(text));
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

// TextLexer: characters and words of the text form of a graph, with their places.
//
// Private to the parser (text_parser.cc, text_literals.cc); the printer shares IsTextIdentifier
// with it.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

// Returns whether `text` consists of letters, digits, `_` and `.`, begins with a letter or `_`, and
// is not `_` alone: such a text needs no quotes.
bool IsTextIdentifier(absl::string_view text);

class TextLexer {
 public:
  // `text` must outlive the lexer.
  explicit TextLexer(absl::string_view text) : text_(text) {}

  // Returns whether the text has ended. All methods skip white space first.
  bool AtEnd();
  char Peek();           // the next character, '\0' at the end
  bool TryChar(char c);  // consumes `c` if it is next
  absl::Status Expect(char c);
  bool TryWord(absl::string_view word);  // consumes the identifier `word` if it is next

  // Reads a word of letters, digits, `_` and `.` (digits may come first), or a quoted string.
  absl::StatusOr<std::string> Name();
  absl::StatusOr<std::string> Quoted();
  // Reads the characters of a number or of inf, -inf, nan, nan(0x...).
  absl::StatusOr<std::string> Number();

  // Returns INVALID_ARGUMENT "line 3, column 7: <message>" for the place of the next character.
  absl::Status Error(absl::string_view message);
  // Returns the same for the character at `position`, which is next then.
  absl::Status ErrorAt(size_t position, absl::string_view message);

  size_t position() const { return position_; }
  void set_position(size_t position) { position_ = position; }

 private:
  void SkipSpace();
  absl::string_view Word();

  const absl::string_view text_;
  size_t position_ = 0;
};

}  // namespace reprise

// How text that comes from outside (from clients, from files) is shown to people: in the log, in
// reports, on the status page and in error messages. Such text can neither forge a line, move a
// terminal's cursor, reverse a line nor fill a page.
//
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace reprise {

// How much of it is shown, in bytes.
inline constexpr size_t kShownIdBytes = 128;    // ids that clients give their requests
inline constexpr size_t kShownNameBytes = 256;  // names of models, inputs and nodes

// Returns `text` as it is where every character is printable. In all other texts a control
// character is `\n`, `\t`, `\r` or `\x1b`, one that changes lines or directions unseen is
// `\u{202e}`, and a byte that is no UTF-8 is `\xff`. The result is printable: a second call changes
// nothing.
std::string Printable(absl::string_view text);

// Returns whether Printable would return `text` as it is.
bool IsPrintable(absl::string_view text);

// Returns the printable text, cut where `text` has more than `most_bytes`, between two characters.
// It then ends in its length: "aaaa… (70000 bytes)".
std::string ShownText(absl::string_view text, size_t most_bytes = kShownNameBytes);

// Returns the same between quotes, with a backslash before quotes and backslashes.
std::string QuotedText(absl::string_view text, size_t most_bytes = kShownNameBytes);

struct Utf8Character {
  uint32_t code = 0;
  size_t bytes = 0;   // 0: the text does not begin with UTF-8
  size_t broken = 0;  // the bytes that begin a character and are not followed by its rest
};

// Returns the first character of `text`, which is not empty. Overlong forms, surrogates and numbers
// above 0x10ffff are no characters.
Utf8Character FirstCharacter(absl::string_view text);

}  // namespace reprise

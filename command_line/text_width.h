// Lines that fit the terminal.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace reprise::command_line {

// Returns the columns of the terminal that stdout is; where it is none, so that lines are read by
// programs, `otherwise`.
size_t TerminalWidth(size_t otherwise);

// Returns the number of columns that UTF-8 takes, one a character.
size_t WidthOf(absl::string_view text);

// Returns the number of bytes of the first `count` characters of `text`, or of all where there are
// fewer.
size_t BytesOf(absl::string_view text, size_t count);

// Breaks `text` at blanks into lines of at most `width` columns, each but the first one after
// `indent` blanks. The first line has `first` columns before it. A word that is longer than a line
// is left whole. A line break in `text` stays one.
std::string Wrap(absl::string_view text, size_t width, size_t indent, size_t first);

// Breaks each line of `text` that is wider than the terminal at blanks; the rest of it is indented
// by two more blanks than its beginning. Nothing is changed where stdout is no terminal.
std::string FitTerminal(absl::string_view text);

// Prints `text` to stdout, so broken.
void Print(absl::string_view text);

// Breaks words of more than `width` columns, after the last ',', '=', '.', '/' or '|' that fits
// where there is one.
std::string BreakWords(absl::string_view text, size_t width);

}  // namespace reprise::command_line

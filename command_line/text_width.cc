#include "command_line/text_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace reprise::command_line {
namespace {

constexpr size_t kNarrowest = 40;

}  // namespace

size_t TerminalWidth(size_t otherwise) {
  winsize size = {};
  if (isatty(STDOUT_FILENO) == 0) return otherwise;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return otherwise;
  return std::max<size_t>(size.ws_col, kNarrowest);
}

size_t WidthOf(absl::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

std::string Wrap(absl::string_view text, size_t width, size_t indent, size_t first) {
  std::string result;
  size_t column = first;
  bool first_line = true;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!first_line) {
      absl::StrAppend(&result, "\n", line.empty() ? "" : std::string(indent, ' '));
      column = indent;
    }
    first_line = false;
    bool first_word = true;
    for (const absl::string_view word : absl::StrSplit(line, ' ')) {
      const size_t size = WidthOf(word);
      if (!first_word && column + 1 + size > width && column > indent) {
        absl::StrAppend(&result, "\n", std::string(indent, ' '));
        column = indent;
      } else if (!first_word) {
        absl::StrAppend(&result, " ");
        ++column;
      }
      first_word = false;
      absl::StrAppend(&result, word);
      column += size;
    }
  }
  return result;
}

}  // namespace reprise::command_line

#include "command_line/text_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

size_t BytesOf(absl::string_view text, size_t count) {
  size_t at = 0;
  while (at < text.size() && count > 0) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    --count;
  }
  return at;
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

std::string FitTerminal(absl::string_view text) {
  constexpr size_t kUnlimited = size_t{1} << 20;
  const size_t width = TerminalWidth(kUnlimited);
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t lead = std::min(line.find_first_not_of(' '), line.size());
    lines.push_back(
        WidthOf(line) <= width
            ? std::string(line)
            : absl::StrCat(line.substr(0, lead), Wrap(line.substr(lead), width, lead + 2, lead)));
  }
  return absl::StrJoin(lines, "\n");
}

void Print(absl::string_view text) { std::fputs(FitTerminal(text).c_str(), stdout); }

std::string BreakWords(absl::string_view text, size_t width) {
  std::string result;
  bool first = true;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!first) result += ' ';
    first = false;
    while (WidthOf(word) > width) {
      const size_t most = BytesOf(word, width);
      const size_t after = word.substr(0, most).find_last_of(",=./|");
      const size_t cut = after == absl::string_view::npos ? most : after + 1;
      absl::StrAppend(&result, word.substr(0, cut), "\n");
      word.remove_prefix(cut);
    }
    absl::StrAppend(&result, word);
  }
  return result;
}

}  // namespace reprise::command_line

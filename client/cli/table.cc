#include "client/cli/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "command_line/text_width.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

// Takes columns from the widest one of texts until a line fits the terminal, where stdout is one.
void FitTerminal(const std::vector<Table::Column>& columns, std::vector<size_t>& widths) {
  constexpr size_t kUnlimited = size_t{1} << 20, kNarrowest = 12;
  const size_t limit = command_line::TerminalWidth(kUnlimited);
  size_t all = 2 * (columns.size() - 1);
  for (const size_t width : widths) all += width;
  while (all > limit) {
    size_t widest = columns.size();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].align == kRight || widths[i] <= kNarrowest) continue;
      if (widest == columns.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == columns.size()) return;
    --widths[widest];
    --all;
  }
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(std::vector<std::string> cells) {
  REPRISE_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::Text() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = command_line::WidthOf(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, command_line::WidthOf(row[i]));
    widths.push_back(width);
  }
  FitTerminal(columns_, widths);
  std::string text;
  auto add_line = [&](auto cell) {
    // Each cell in lines of its column's width.
    std::vector<std::vector<std::string>> cells;
    size_t lines = 1;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string broken = command_line::BreakWords(cell(i), widths[i]);
      cells.push_back(absl::StrSplit(command_line::Wrap(broken, widths[i], 0, 0), '\n'));
      lines = std::max(lines, cells.back().size());
    }
    for (size_t number = 0; number < lines; ++number) {
      std::string line;
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (i > 0) absl::StrAppend(&line, "  ");
        const std::string value = number < cells[i].size() ? cells[i][number] : "";
        const size_t width = command_line::WidthOf(value);
        const std::string space(width < widths[i] ? widths[i] - width : 0, ' ');
        const bool right = columns_[i].align == Align::kRight;
        absl::StrAppend(&line, right ? space : "", value, right ? "" : space);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      absl::StrAppend(&text, line, "\n");
    }
  };
  add_line([&](size_t i) { return columns_[i].title; });
  add_line([&](size_t i) { return std::string(widths[i], '-'); });
  for (const auto& row : rows_) {
    add_line([&](size_t i) { return row[i]; });
  }
  return text;
}

std::string Bytes(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, units[unit]);
}

std::string Count(uint64_t count) {
  std::string text = absl::StrCat(count);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ' ');
  return text;
}

std::string Fixed(double value, int decimals) {
  const std::string text = absl::StrFormat("%.*f", decimals, value);
  // No minus before a value that is rounded to zero.
  return text[0] == '-' && text.find_first_not_of("-0.") == std::string::npos ? text.substr(1)
                                                                              : text;
}

std::string Seconds(double seconds) {
  return seconds < 1 ? absl::StrFormat("%.2f ms", seconds * 1e3)
                     : absl::StrFormat("%.2f s", seconds);
}

std::string Percent(double part, double whole) {
  return whole == 0 ? "-" : absl::StrFormat("%.1f %%", 100 * part / whole);
}

std::string Shorten(absl::string_view text, size_t width) {
  if (command_line::WidthOf(text) <= width) return std::string(text);
  return absl::StrCat(text.substr(0, command_line::BytesOf(text, width - 1)), "…");
}

}  // namespace reprise::cli

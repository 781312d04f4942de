#include "client/cli/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "command_line/text_width.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

// A column of texts keeps this many characters, or its longest piece that is not broken.
constexpr size_t kNarrowest = 12, kLongestPiece = 24;
constexpr size_t kUnlimited = size_t{1} << 20;

size_t LongestPiece(const std::string& text) {
  size_t longest = 0;
  for (const absl::string_view piece : absl::StrSplit(text, absl::ByAnyChar(" ,=./|\n"))) {
    longest = std::max(longest, command_line::WidthOf(piece) + 1);  // and what it is broken after
  }
  return std::min(longest, kLongestPiece);
}

// A column as it is laid out.
struct Width {
  size_t now = 0;
  size_t least = 0;  // that it may be narrowed to
};

size_t LineOf(const std::vector<size_t>& columns, const std::vector<Width>& widths) {
  size_t all = 2 * (columns.size() - 1);
  for (const size_t i : columns) all += widths[i].now;
  return all;
}

// Takes characters from the widest columns of texts until a line has at most `limit`.
void Narrow(const std::vector<size_t>& columns, size_t limit, std::vector<Width>& widths) {
  for (size_t all = LineOf(columns, widths); all > limit; --all) {
    Width* widest = nullptr;
    for (const size_t i : columns) {
      Width& width = widths[i];
      if (width.now <= width.least) continue;
      if (widest == nullptr || width.now > widest->now) widest = &width;
    }
    if (widest == nullptr) return;
    --widest->now;
  }
}

// Returns the columns of each part of a table: all in one where a line of at most `limit` has room
// for them, else as many as it has room for, each part with the first column.
std::vector<std::vector<size_t>> PartsOf(const std::vector<Width>& widths, size_t limit) {
  std::vector<std::vector<size_t>> parts = {{0}};
  size_t used = widths[0].least;
  for (size_t i = 1; i < widths.size(); ++i) {
    if (used + 2 + widths[i].least > limit && parts.back().size() > 1) {
      parts.push_back({0});
      used = widths[0].least;
    }
    parts.back().push_back(i);
    used += 2 + widths[i].least;
  }
  return parts;
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(std::vector<std::string> cells) {
  REPRISE_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::Text() const {
  std::vector<Width> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    Width width = {.now = command_line::WidthOf(columns_[i].title), .least = kNarrowest};
    width.least = std::max(width.least, LongestPiece(columns_[i].title));
    for (const auto& row : rows_) {
      width.now = std::max(width.now, command_line::WidthOf(row[i]));
      width.least = std::max(width.least, LongestPiece(row[i]));
    }
    if (columns_[i].align == kRight || width.least > width.now) width.least = width.now;
    widths.push_back(width);
  }
  const size_t limit = command_line::TerminalWidth(kUnlimited);
  std::string text;
  for (const std::vector<size_t>& part : PartsOf(widths, limit)) {
    std::vector<Width> narrowed = widths;
    Narrow(part, limit, narrowed);
    std::vector<size_t> sizes;
    sizes.reserve(part.size());
    for (const size_t i : part) sizes.push_back(narrowed[i].now);
    if (!text.empty()) absl::StrAppend(&text, "\n");
    AddPart(part, sizes, text);
  }
  return text;
}

void Table::AddPart(const std::vector<size_t>& part, const std::vector<size_t>& widths,
                    std::string& text) const {
  const auto add_line = [&](auto cell) {
    // Each cell in lines of its column's width.
    std::vector<std::vector<std::string>> cells;
    size_t lines = 1;
    for (size_t i = 0; i < part.size(); ++i) {
      const std::string broken = command_line::BreakWords(cell(i), widths[i]);
      cells.push_back(absl::StrSplit(command_line::Wrap(broken, widths[i], 0, 0), '\n'));
      lines = std::max(lines, cells.back().size());
    }
    for (size_t number = 0; number < lines; ++number) {
      std::string line;
      for (size_t i = 0; i < part.size(); ++i) {
        if (i > 0) absl::StrAppend(&line, "  ");
        const std::string value = number < cells[i].size() ? cells[i][number] : "";
        const size_t width = command_line::WidthOf(value);
        const std::string space(width < widths[i] ? widths[i] - width : 0, ' ');
        const bool right = columns_[part[i]].align == Align::kRight;
        absl::StrAppend(&line, right ? space : "", value, right ? "" : space);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      absl::StrAppend(&text, line, "\n");
    }
  };
  add_line([&](size_t i) { return columns_[part[i]].title; });
  add_line([&](size_t i) { return std::string(widths[i], '-'); });
  for (const auto& row : rows_) {
    add_line([&](size_t i) { return row[part[i]]; });
  }
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

std::string CsvCell(const std::string& text) {
  if (!absl::StrContains(text, ',') && !absl::StrContains(text, '"')) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace reprise::cli

#include "tools/files/length_file.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "tools/files/file_bytes.h"

namespace reprise::cli {
namespace {

constexpr int64_t kLongest = int64_t{1} << 24;
// A count column may not ask for more memory than this many lengths take.
constexpr int64_t kMostLengths = 50'000'000;
constexpr size_t kShownCharacters = 60;  // the part of a wrong cell that is shown

struct Line {
  int number = 0;
  std::vector<std::string> cells;
};

// Returns the cells of a line, separated by commas; within double quotes a comma is one of the
// text.
std::vector<std::string> Cells(absl::string_view line) {
  std::vector<std::string> cells;
  std::string cell;
  bool quoted = false;
  const auto end = [&] {
    cells.push_back(std::string(absl::StripAsciiWhitespace(cell)));
    cell.clear();
  };
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      end();
    } else {
      cell += c;
    }
  }
  end();
  return cells;
}

std::vector<Line> Lines(absl::string_view text) {
  std::vector<Line> lines;
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // a byte order mark
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    lines.push_back({number, Cells(line)});
  }
  return lines;
}

// Returns whether it is a header, which has a cell that begins with a letter.
bool IsHeader(const Line& line) {
  return std::any_of(line.cells.begin(), line.cells.end(), [](const std::string& cell) {
    return !cell.empty() && absl::ascii_isalpha(static_cast<unsigned char>(cell[0]));
  });
}

// Columns of `reprise dynamicity --csv` that are neither shapes nor their count.
bool IsRemark(absl::string_view column) {
  return column == "model" || column == "version" || column == "recent" || column == "larger" ||
         column == "outside";
}

// Position of the first of `names` among the cells, ignoring case; -1: none.
int FindColumn(const Line& header, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    for (size_t i = 0; i < header.cells.size(); ++i) {
      if (absl::EqualsIgnoreCase(header.cells[i], name)) return static_cast<int>(i);
    }
  }
  return -1;
}

absl::Status BadCell(absl::string_view name, const Line& line, absl::string_view cell,
                     absl::string_view what) {
  const std::string shown = absl::CHexEscape(cell.substr(0, kShownCharacters));
  return absl::InvalidArgumentError(
      absl::StrCat(name, ":", line.number, ": '", shown, "' is not a ", what));
}

absl::StatusOr<int64_t> CellNumber(absl::string_view name, const Line& line, int column,
                                   absl::string_view what, int64_t least = 1) {
  if (column >= static_cast<int>(line.cells.size())) {
    return absl::InvalidArgumentError(absl::StrCat(name, ":", line.number, ": has ",
                                                   line.cells.size(), " columns, the ", what,
                                                   " is in column ", column + 1));
  }
  int64_t number = 0;
  const std::string& cell = line.cells[column];
  if (!absl::SimpleAtoi(cell, &number) || number < least || number > kLongest) {
    return BadCell(name, line, cell, what);
  }
  return number;
}

absl::StatusOr<std::vector<int64_t>> ParseShape(absl::string_view name, const Line& line,
                                                absl::string_view cell) {
  std::vector<int64_t> shape;
  absl::string_view inner = cell;
  if (absl::ConsumePrefix(&inner, "[")) absl::ConsumeSuffix(&inner, "]");
  for (absl::string_view part : absl::StrSplit(inner, absl::ByAnyChar("x*;"))) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(part), &size) || size < 0 || size > kLongest) {
      return BadCell(name, line, cell, "shape such as 2x128");
    }
    shape.push_back(size);
  }
  return shape;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ParseLengths(absl::string_view text, absl::string_view name) {
  const std::vector<Line> lines = Lines(text);
  std::vector<int64_t> lengths;
  int length_column = 0, count_column = 1;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (i == 0 && IsHeader(line)) {
      length_column = std::max(
          0, FindColumn(line, {"length", "sequence", "tokens", "len", "seq_len", "seqlen"}));
      count_column = FindColumn(line, {"count", "requests", "n", "weight"});
      continue;
    }
    ASSIGN_OR_RETURN(const int64_t length, CellNumber(name, line, length_column, "length"));
    int64_t count = 1;
    if (count_column >= 0 && count_column < static_cast<int>(line.cells.size()) &&
        count_column != length_column) {
      ASSIGN_OR_RETURN(count, CellNumber(name, line, count_column, "count", /*least=*/0));
    }
    if (static_cast<int64_t>(lengths.size()) + count > kMostLengths) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ":", line.number, ": more than ", kMostLengths, " lengths"));
    }
    lengths.insert(lengths.end(), count, length);
  }
  if (lengths.empty()) return absl::InvalidArgumentError(absl::StrCat("no length in '", name, "'"));
  return lengths;
}

absl::StatusOr<std::vector<int64_t>> ReadLengths(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseLengths(text, path);
}

absl::StatusOr<ShapeColumns> ParseShapes(absl::string_view text, absl::string_view name) {
  const std::vector<Line> lines = Lines(text);
  ShapeColumns shapes;
  int count_column = -1;
  size_t columns = 0;
  std::vector<bool> remark;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (i == 0) {
      columns = line.cells.size();
      const bool header = IsHeader(line);
      if (header) count_column = FindColumn(line, {"count", "requests", "n"});
      for (size_t c = 0; c < columns; ++c) {
        remark.push_back(header && IsRemark(line.cells[c]));
        if (static_cast<int>(c) == count_column || remark[c]) continue;
        shapes.inputs.push_back(header ? line.cells[c] : absl::StrCat("input ", c + 1));
      }
      if (header) continue;
    }
    if (line.cells.size() != columns) {
      return absl::InvalidArgumentError(absl::StrCat(name, ":", line.number, ": has ",
                                                     line.cells.size(), " columns, the first line ",
                                                     columns));
    }
    double count = 1;
    std::vector<std::vector<int64_t>>& row = shapes.rows.emplace_back();
    for (size_t c = 0; c < columns; ++c) {
      if (static_cast<int>(c) == count_column) {
        ASSIGN_OR_RETURN(const int64_t number,
                         CellNumber(name, line, count_column, "count", /*least=*/0));
        count = static_cast<double>(number);
        continue;
      }
      if (remark[c]) continue;
      ASSIGN_OR_RETURN(std::vector<int64_t> shape, ParseShape(name, line, line.cells[c]));
      row.push_back(std::move(shape));
    }
    shapes.counts.push_back(count);
  }
  if (shapes.rows.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no shape in '", name, "'"));
  }
  return shapes;
}

absl::StatusOr<ShapeColumns> ReadShapes(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseShapes(text, path);
}

}  // namespace reprise::cli

// Tables for people: aligned columns, numbers to the right, rules only where they help.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace reprise::cli {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns);

  // Adds a row of as many cells as there are columns.
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // Title line, a rule, the rows; two spaces between columns, no space at a line's end. Widths
  // count characters of UTF-8, not bytes. Where a line is wider than the terminal that stdout is,
  // columns of texts are narrowed; where that is not enough, columns that are left stand in further
  // tables below, each with the first column.
  std::string Text() const;

 private:
  // Appends the columns `part`, of these widths.
  void AddPart(const std::vector<size_t>& part, const std::vector<size_t>& widths,
               std::string& text) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// The alignment of numbers, for the columns of a table.
inline constexpr Table::Align kRight = Table::Align::kRight;

// "1.5 MiB", "312 B".
std::string Bytes(uint64_t bytes);
// With a separator each three digits: "1 234 567".
std::string Count(uint64_t count);
// `decimals` digits after the point.
std::string Fixed(double value, int decimals);
// "0.42 ms", "1.20 s".
std::string Seconds(double seconds);
// "12.3 %"; "-" if `whole` is 0.
std::string Percent(double part, double whole);
// Returns a cell of CSV: quoted where a comma or a quote is in it.
std::string CsvCell(const std::string& text);
// Returns the first `width` characters, the last of them an ellipsis if the text was longer.
std::string Shorten(absl::string_view text, size_t width);

}  // namespace reprise::cli

// HtmlPage: a page of tables and texts in one file, which asks nothing of anywhere else.
//
//   HtmlPage page("Report");
//   page.AddHeading(2, "bert");
//   page.AddTable({"bucket", "replays"}, {{"b1_s16", "3"}});
//   file << page.Text();
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace reprise::client {

// Returns `text` in which nothing is markup.
std::string EscapeHtml(absl::string_view text);

class HtmlPage {
 public:
  explicit HtmlPage(absl::string_view title);

  // Adds a heading of `level`, from 1 on; the page has links to those of level 2.
  void AddHeading(int level, absl::string_view text);
  void AddParagraph(absl::string_view text);
  using Row = std::vector<std::string>;
  // Adds a table, whose numbers stand on the right; nothing where there are no rows.
  void AddTable(const Row& titles, const std::vector<Row>& rows);
  struct Bar {
    std::string name;
    double value = 0;
    std::string label;  // the value, for people
  };
  // Adds bars, the longest of the full width, with names and labels beside them.
  void AddBars(const std::vector<Bar>& bars);
  // Adds a text of fixed width, which is folded until it is asked for.
  void AddFolded(absl::string_view title, absl::string_view text);

  std::string Text() const;

 private:
  const std::string title_;
  std::string links_;
  std::string body_;
  int sections_ = 0;
};

}  // namespace reprise::client

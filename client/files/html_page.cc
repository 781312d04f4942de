#include "client/files/html_page.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace reprise::client {
namespace {

constexpr char kStyle[] =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em;"
    "color:#1c2530;background:#fff}"
    "h1,h2,h3{line-height:1.2}h2{border-top:1px solid #ccd3da;padding-top:1em;margin-top:2em}"
    "table{border-collapse:collapse;margin:.6em 0}"
    "th,td{border:1px solid #dde2e7;padding:.25em .6em;text-align:left;vertical-align:top}"
    "th{background:#f2f5f8}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "pre{background:#f6f8fa;border:1px solid #dde2e7;padding:.6em;overflow:auto}"
    "summary{cursor:pointer}nav a{margin-right:1em}"
    ".b{display:grid;grid-template-columns:12em 1fr 12em;gap:.2em .6em;align-items:center}"
    ".b i{display:block;height:.9em;background:#4477aa}";

// Returns whether the text begins as a number does: "3", "12.5 ms", "40%".
bool IsNumber(absl::string_view text) {
  return !text.empty() && (absl::ascii_isdigit(static_cast<unsigned char>(text[0])) != 0) &&
         text.size() < 16 && !absl::c_linear_search(text, '_') && !absl::c_linear_search(text, '=');
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped.push_back(c);
    }
  }
  return escaped;
}

HtmlPage::HtmlPage(absl::string_view title) : title_(title) {}

void HtmlPage::AddHeading(int level, absl::string_view text) {
  const std::string id = absl::StrCat("s", ++sections_);
  if (level == 2) {
    absl::StrAppend(&links_, "<a href=\"#", id, "\">", EscapeHtml(text), "</a>\n");
  }
  absl::StrAppend(&body_, "<h", level, " id=\"", id, "\">", EscapeHtml(text), "</h", level, ">\n");
}

void HtmlPage::AddParagraph(absl::string_view text) {
  absl::StrAppend(&body_, "<p>", EscapeHtml(text), "</p>\n");
}

void HtmlPage::AddTable(const Row& titles, const std::vector<Row>& rows) {
  if (rows.empty()) return;
  body_ += "<table><tr>";
  for (const std::string& title : titles) {
    absl::StrAppend(&body_, "<th>", EscapeHtml(title), "</th>");
  }
  body_ += "</tr>\n";
  for (const Row& row : rows) {
    body_ += "<tr>";
    for (const std::string& cell : row) {
      absl::StrAppend(&body_, IsNumber(cell) ? "<td class=\"n\">" : "<td>", EscapeHtml(cell),
                      "</td>");
    }
    body_ += "</tr>\n";
  }
  body_ += "</table>\n";
}

void HtmlPage::AddBars(const std::vector<Bar>& bars) {
  double most = 0;
  for (const Bar& bar : bars) most = std::max(most, bar.value);
  if (most <= 0) return;
  body_ += "<div class=\"b\">\n";
  for (const Bar& bar : bars) {
    absl::StrAppend(&body_, "<span>", EscapeHtml(bar.name),
                    "</span><i style=\"width:", std::lround(100 * bar.value / most),
                    "%\"></i><span>", EscapeHtml(bar.label), "</span>\n");
  }
  body_ += "</div>\n";
}

void HtmlPage::AddFolded(absl::string_view title, absl::string_view text) {
  absl::StrAppend(&body_, "<details><summary>", EscapeHtml(title), "</summary><pre>",
                  EscapeHtml(text), "</pre></details>\n");
}

std::string HtmlPage::Text() const {
  return absl::StrCat("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
                      EscapeHtml(title_), "</title><style>", kStyle, "</style></head>\n<body><h1>",
                      EscapeHtml(title_), "</h1>\n<nav>", links_, "</nav>\n", body_,
                      "</body></html>\n");
}

}  // namespace reprise::client

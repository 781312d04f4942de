#include "tools/reports/dynamicity_report.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/table.h"

namespace reprise::cli {
namespace {

std::string Percentage(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

// "little dynamicity", "a lot of dynamicity".
std::string Verdict(absl::string_view verdict) {
  return absl::StrCat(verdict, verdict == "a lot" ? " of" : "", " dynamicity");
}

std::string AxisTable(const v1::ModelDynamicity& report, bool server) {
  std::vector<Table::Column> columns = {{"axis"},         {"sizes", kRight}, {"least", kRight},
                                        {"most", kRight}, {"bits", kRight},  {"moved", kRight}};
  if (server) columns.push_back({"padding"});
  Table table(columns);
  for (const v1::AxisDynamicity& axis : report.axes()) {
    std::vector<std::string> row = {axis.axis(),
                                    Count(axis.distinct()),
                                    absl::StrCat(axis.least()),
                                    absl::StrCat(axis.most()),
                                    Fixed(axis.entropy_bits(), 2),
                                    Fixed(axis.moved(), 2)};
    if (server) row.push_back(axis.certified() ? "safe" : "not safe");
    table.AddRow(std::move(row));
  }
  return table.empty() ? "" : absl::StrCat("\n", table.Text());
}

// Inputs whose shapes are the same in every row share one column: their positions.
std::vector<std::vector<int>> GroupInputs(const v1::ModelDynamicity& report) {
  std::map<std::vector<std::string>, size_t> known;
  std::vector<std::vector<int>> groups;
  for (int i = 0; i < report.inputs_size(); ++i) {
    std::vector<std::string> texts;
    for (const v1::RequestShape& shape : report.shapes()) texts.push_back(shape.inputs(i));
    const auto [it, is_new] = known.emplace(std::move(texts), groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(i);
  }
  return groups;
}

std::string ShapeTableText(const v1::ModelDynamicity& report, bool server) {
  if (report.shapes().empty()) return "";
  const std::vector<std::vector<int>> groups = GroupInputs(report);
  std::vector<Table::Column> columns;
  for (const std::vector<int>& group : groups) {
    columns.push_back({absl::StrJoin(
        group, ", ", [&](std::string* out, int i) { absl::StrAppend(out, report.inputs(i)); })});
  }
  columns.push_back({"requests", kRight});
  columns.push_back({"share", kRight});
  if (server) {
    columns.push_back({"recent", kRight});
    columns.push_back({"larger", kRight});
    columns.push_back({"outside", kRight});
  }
  Table table(columns);
  const double all = static_cast<double>(report.requests());
  for (const v1::RequestShape& shape : report.shapes()) {
    std::vector<std::string> row;
    for (const std::vector<int>& group : groups) row.push_back(shape.inputs(group[0]));
    row.push_back(Count(shape.requests()));
    row.push_back(Percent(static_cast<double>(shape.requests()), all));
    if (server) {
      row.push_back(Count(shape.recent()));
      row.push_back(Count(shape.larger()));
      row.push_back(Count(shape.outside()));
    }
    table.AddRow(std::move(row));
  }
  std::string text = absl::StrCat("\n", table.Text());
  if (report.unlisted_requests() > 0) {
    absl::StrAppend(&text, "and ", Count(report.unlisted_requests()),
                    " requests of other shapes (--csv lists them)\n");
  }
  return text;
}

}  // namespace

std::string DynamicityText(const v1::ModelDynamicity& report, bool server) {
  std::string text =
      absl::StrCat(report.model(), server ? absl::StrCat(" version ", report.version()) : "", ": ",
                   report.requests() == 0 ? "no requests yet" : Verdict(report.verdict()), "\n");
  if (report.requests() > 0) {
    absl::StrAppend(&text, "    requests  ", Count(report.requests()));
    if (server) absl::StrAppend(&text, ", judged by the last ", Count(report.recent_requests()));
    absl::StrAppendFormat(&text, "\n    shapes    %s%s; %.1f of them count (entropy %.2f bits)\n",
                          report.distinct_more() ? "at least " : "", Count(report.distinct()),
                          report.shapes_that_count(), report.entropy_bits());
    absl::StrAppend(
        &text, "    cause     ",
        report.cause().empty() ? "none: one shape" : absl::StrCat("axis ", report.cause()),
        "\n    trend     ", report.trend(), "; ", Percentage(report.fresh_share()),
        " of the requests brought a shape for the first time\n");
    if (server) {
      absl::StrAppend(&text, "    outside   ", Percentage(report.outside_share()),
                      " found no ready recipe that could serve them, ",
                      Percentage(report.larger_share()), " ran on a larger one\n");
    } else {
      absl::StrAppend(&text, "    outside   ", Percentage(report.outside_share()),
                      " would find no ready recipe on a server without buckets, in this order\n");
    }
    text += AxisTable(report, server);
    text += ShapeTableText(report, server);
  }
  absl::StrAppend(&text, "\nwhat to do\n");
  for (const std::string& sentence : report.advice()) {
    absl::StrAppend(&text, "    - ", sentence, "\n");
  }
  return text;
}

std::string DynamicityCsv(const v1::ModelDynamicity& report) {
  std::vector<std::string> header = {"model", "version"};
  for (const std::string& input : report.inputs()) header.push_back(CsvCell(input));
  for (const char* name : {"requests", "recent", "larger", "outside"}) header.push_back(name);
  std::string text = absl::StrCat(absl::StrJoin(header, ","), "\n");
  for (const v1::RequestShape& shape : report.shapes()) {
    std::vector<std::string> cells = {CsvCell(report.model()), report.version()};
    for (const std::string& input : shape.inputs()) cells.push_back(input);
    for (uint64_t count : {shape.requests(), shape.recent(), shape.larger(), shape.outside()}) {
      cells.push_back(absl::StrCat(count));
    }
    absl::StrAppend(&text, absl::StrJoin(cells, ","), "\n");
  }
  return text;
}

}  // namespace reprise::cli

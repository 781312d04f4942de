// The picture of a plan. Plain SVG 1.1: no script, no outside font, nothing to fetch.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/cli/table.h"
#include "tools/reports/plan_report.h"

namespace reprise::cli {
namespace {

constexpr double kWidth = 980, kHeight = 800;
constexpr int kBars = 140;

struct Style {
  Strategy strategy;
  const char* colour;
  double stroke;
};
constexpr Style kStyles[] = {{Strategy::kMaximum, "#9aa0a6", 1.5},
                             {Strategy::kPowersOfTwo, "#c77700", 1.5},
                             {Strategy::kLinear, "#8e5bb5", 1.5},
                             {Strategy::kPercentile, "#1f77b4", 2},
                             {Strategy::kSolver, "#12854a", 3}};

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

std::string Text(double x, double y, absl::string_view anchor, absl::string_view content,
                 absl::string_view more = "") {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" %s>%s</text>\n", x, y,
                         anchor, more, Escaped(content));
}

std::string Line(double x1, double y1, double x2, double y2, absl::string_view stroke,
                 absl::string_view more = "") {
  return absl::StrFormat(
      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" %s/>\n", x1, y1, x2, y2,
      stroke, more);
}

// Returns a step of 1, 2 or 5 times a power of ten that divides `span` into about `count` parts.
double NiceStep(double span, int count) {
  const double raw = span / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

struct Panel {
  double left, top, right, bottom;
  double x_from, x_to, y_to;
  double X(double value) const {
    return left + (value - x_from) / (x_to - x_from) * (right - left);
  }
  double Y(double value) const { return bottom - value / y_to * (bottom - top); }
};

// Names at the right ends of the curves, pushed apart where they would overlap.
std::string CurveLabels(const Panel& panel, const PlanTable& table) {
  struct Label {
    double y;
    const Style* style;
  };
  std::vector<Label> labels;
  for (const Style& style : kStyles) {
    labels.push_back({panel.Y(100 * table.at(table.most, style.strategy).waste), &style});
  }
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
  for (size_t i = 1; i < labels.size(); ++i) {
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + 17);
  }
  const double over = labels.back().y - (panel.bottom - 2);
  for (size_t i = labels.size(); over > 0 && i-- > 0;) {
    const double limit = i + 1 == labels.size() ? panel.bottom - 2 : labels[i + 1].y - 17;
    labels[i].y = std::min(labels[i].y, limit);
  }
  std::string text;
  for (const Label& label : labels) {
    text += Text(
        panel.right + 10, label.y + 4, "start",
        absl::StrFormat("%s  %.1f %%", StrategyName(label.style->strategy),
                        100 * table.at(table.most, label.style->strategy).waste),
        absl::StrFormat("fill=\"%s\"%s", label.style->colour,
                        label.style->strategy == Strategy::kSolver ? " font-weight=\"bold\"" : ""));
  }
  return text;
}

std::string WastePanel(const PlanTable& table, const PlanFacts& facts) {
  double most = 1;
  for (const auto& row : table.rows) {
    for (const Judgement& judged : row) most = std::max(most, 100 * judged.waste);
  }
  const double step = NiceStep(most, 5);
  const Panel panel = {70,
                       100,
                       760,
                       390,
                       1,
                       std::max(2.0, static_cast<double>(table.most)),
                       std::ceil(most / step) * step};
  std::string text = Text(70, 82, "start", "Padding: share of computed elements that no one sent",
                          "class=\"title\"");
  for (double y = 0; y <= panel.y_to + 1e-9; y += step) {
    text += Line(panel.left, panel.Y(y), panel.right, panel.Y(y), "#e3e6e8");
    text += Text(panel.left - 8, panel.Y(y) + 4, "end", absl::StrFormat("%g %%", y));
  }
  for (int k = 1; k <= table.most; ++k) {
    text += Text(panel.X(k), panel.bottom + 18, "middle", absl::StrCat(k));
  }
  text += Text((panel.left + panel.right) / 2, panel.bottom + 38, "middle", "number of buckets");
  text += Line(panel.X(facts.chosen), panel.top, panel.X(facts.chosen), panel.bottom, "#b7bdc2",
               "stroke-dasharray=\"3 4\"");
  for (const Style& style : kStyles) {
    std::string points;
    for (int k = 1; k <= table.most; ++k) {
      absl::StrAppendFormat(&points, "%.1f,%.1f ", panel.X(k),
                            panel.Y(100 * table.at(k, style.strategy).waste));
    }
    absl::StrAppendFormat(&text,
                          "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" "
                          "stroke-width=\"%.1f\" stroke-linejoin=\"round\"/>\n",
                          points, style.colour, style.stroke);
  }
  const double waste = 100 * table.at(facts.chosen, Strategy::kSolver).waste;
  absl::StrAppendFormat(&text, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\"/>\n",
                        panel.X(facts.chosen), panel.Y(waste), kStyles[4].colour);
  return text + CurveLabels(panel, table);
}

std::string HistogramPanel(const PlannedLengths& lengths, const Judgement& chosen) {
  const double largest = static_cast<double>(lengths.largest());
  const int bars = static_cast<int>(std::min<double>(kBars, largest));
  const double width = largest / bars;
  std::vector<double> weights(bars, 0);
  for (const WeightedSize& one : lengths.longest) {
    const int bar = static_cast<int>((static_cast<double>(one.size) - 0.5) / width);
    weights[std::clamp(bar, 0, bars - 1)] += 100 * one.weight / lengths.rows;
  }
  const double most = *std::max_element(weights.begin(), weights.end());
  const double step = NiceStep(most, 4);
  const Panel panel = {70, 505, 930, 735, 0, largest, std::ceil(most / step) * step};
  std::string text =
      Text(70, 472, "start",
           absl::StrFormat("Lengths as they are padded, and the %d boundaries of the solver",
                           chosen.boundaries.size()),
           "class=\"title\"");
  for (double y = 0; y <= panel.y_to + 1e-9; y += step) {
    text += Line(panel.left, panel.Y(y), panel.right, panel.Y(y), "#e3e6e8");
    text += Text(panel.left - 8, panel.Y(y) + 4, "end", absl::StrFormat("%g %%", y));
  }
  for (int i = 0; i < bars; ++i) {
    if (weights[i] <= 0) continue;
    const double x = panel.X(i * width), next = panel.X((i + 1) * width);
    absl::StrAppendFormat(
        &text, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#8fb8d8\"/>\n", x,
        panel.Y(weights[i]), std::max(1.0, next - x - 1), panel.bottom - panel.Y(weights[i]));
  }
  double last_label = -100;
  bool raised = false;
  for (int64_t size : chosen.boundaries) {
    const double x = panel.X(static_cast<double>(size));
    text += Line(x, panel.top - 4, x, panel.bottom, kStyles[4].colour, "stroke-width=\"1.5\"");
    // Labels of close boundaries stand on two levels.
    raised = x - last_label < 30 && !raised;
    last_label = x;
    text += Text(x, panel.top - (raised ? 22 : 8), "middle", absl::StrCat(size),
                 absl::StrFormat("fill=\"%s\" font-weight=\"bold\"", kStyles[4].colour));
  }
  const double tick = NiceStep(largest, 8);
  for (double x = 0; x <= largest; x += tick) {
    text += Text(panel.X(x), panel.bottom + 18, "middle", absl::StrFormat("%g", x));
  }
  text += Text((panel.left + panel.right) / 2, panel.bottom + 38, "middle",
               "length; bars are shares of the rows");
  return text;
}

}  // namespace

std::string PlanSvg(const PlannedLengths& lengths, const PlanTable& table, const PlanFacts& facts) {
  const Judgement& chosen = table.at(facts.chosen, Strategy::kSolver);
  std::string text = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" "
      "fill=\"#3c4043\">\n<style>.title{font-size:16px;fill:#202124}</style>\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, kHeight, kWidth, kHeight);
  std::string what = absl::StrFormat("%s lengths", Count(static_cast<uint64_t>(lengths.rows)));
  if (lengths.rows_at_once > 1) absl::StrAppend(&what, " in batches of ", lengths.rows_at_once);
  text += Text(70, 36, "start", absl::StrCat("Buckets for ", Shorten(facts.source, 60)),
               "font-size=\"20\" fill=\"#202124\"");
  text +=
      Text(70, 56, "start",
           absl::StrFormat("%s, %d distinct shapes; %d buckets of the solver waste %.1f %%", what,
                           lengths.distinct(), chosen.boundaries.size(), 100 * chosen.waste));
  text += WastePanel(table, facts);
  text += HistogramPanel(lengths, chosen);
  return text + "</svg>\n";
}

}  // namespace reprise::cli

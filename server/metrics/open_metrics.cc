#include "server/metrics/open_metrics.h"

#include <prometheus/metric_family.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/format_text.h"

namespace reprise {
namespace {

constexpr absl::string_view kTotal = "_total";

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return FormatText("%.17g", value);
}

// Returns the shortest number that reads as the same, with a point: the format's form of bounds.
std::string BoundText(double bound) {
  if (std::isinf(bound)) return "+Inf";
  std::string text;
  for (int digits = 1; digits <= std::numeric_limits<double>::max_digits10; ++digits) {
    text = FormatText("%.*g", digits, bound);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == bound) break;
  }
  if (!absl::StrContains(text, ".") && !absl::StrContains(text, "e")) absl::StrAppend(&text, ".0");
  return text;
}

std::string Escaped(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
    } else {
      if (c == '\\' || c == '"') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string LabelsText(const prometheus::ClientMetric& metric, absl::string_view le = "") {
  std::string text;
  for (const auto& label : metric.label) {
    absl::StrAppend(&text, text.empty() ? "" : ",", label.name, "=\"", Escaped(label.value), "\"");
  }
  if (!le.empty()) absl::StrAppend(&text, text.empty() ? "" : ",", "le=\"", le, "\"");
  return text.empty() ? "" : absl::StrCat("{", text, "}");
}

void AppendHistogram(const std::string& name, const prometheus::ClientMetric& metric,
                     const Exemplars& exemplars, std::string& out) {
  Exemplars::Labels labels;
  for (const auto& label : metric.label) labels.emplace(label.name, label.value);
  const std::vector<Exemplar> latest = exemplars.Find(name, labels);
  double below = -std::numeric_limits<double>::infinity();
  const auto append = [&](double bound, uint64_t count) {
    absl::StrAppend(&out, name, "_bucket", LabelsText(metric, BoundText(bound)), " ", count);
    const auto found = std::find_if(latest.begin(), latest.end(), [&](const Exemplar& one) {
      return one.value > below && one.value <= bound;
    });
    if (found != latest.end()) {
      absl::StrAppend(&out, " # {trace_id=\"", found->trace_id, "\"} ", NumberText(found->value),
                      " ", FormatText("%.3f", found->unix_seconds));
    }
    out += '\n';
    below = bound;
  };
  for (const auto& bucket : metric.histogram.bucket) {
    append(bucket.upper_bound, bucket.cumulative_count);
  }
  if (!std::isinf(below)) {
    append(std::numeric_limits<double>::infinity(), metric.histogram.sample_count);
  }
  absl::StrAppend(&out, name, "_count", LabelsText(metric), " ", metric.histogram.sample_count,
                  "\n", name, "_sum", LabelsText(metric), " ",
                  NumberText(metric.histogram.sample_sum), "\n");
}

// `others`: the names of all families. A counter whose name without `_total` names another
// family cannot be one here.
void AppendFamily(const prometheus::MetricFamily& family, const std::set<std::string>& others,
                  const Exemplars& exemplars, std::string& out) {
  const bool counts = family.type == prometheus::MetricType::Counter;
  const bool is_counter = counts && absl::EndsWith(family.name, kTotal) &&
                          !others.contains(std::string(absl::StripSuffix(family.name, kTotal)));
  const std::string name =
      is_counter ? std::string(absl::StripSuffix(family.name, kTotal)) : family.name;
  const char* type = is_counter                                         ? "counter"
                     : family.type == prometheus::MetricType::Gauge     ? "gauge"
                     : family.type == prometheus::MetricType::Histogram ? "histogram"
                                                                        : "unknown";
  absl::StrAppend(&out, "# TYPE ", name, " ", type, "\n# HELP ", name, " ", Escaped(family.help),
                  "\n");
  for (const prometheus::ClientMetric& metric : family.metric) {
    if (family.type == prometheus::MetricType::Histogram) {
      AppendHistogram(name, metric, exemplars, out);
      continue;
    }
    const double value = counts                                         ? metric.counter.value
                         : family.type == prometheus::MetricType::Gauge ? metric.gauge.value
                                                                        : metric.untyped.value;
    absl::StrAppend(&out, family.name, LabelsText(metric), " ", NumberText(value), "\n");
  }
}

// Returns the weight of a type in a field `Accept`, or 0 where it is not there.
double WeightOf(absl::string_view accept, absl::string_view type) {
  for (const absl::string_view one : absl::StrSplit(accept, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(one, ';');
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts[0]), type)) continue;
    double weight = 1;
    for (size_t i = 1; i < parts.size(); ++i) {
      absl::string_view parameter = absl::StripAsciiWhitespace(parts[i]);
      if (!absl::ConsumePrefix(&parameter, "q=")) continue;
      if (!absl::SimpleAtod(parameter, &weight)) weight = 0;
    }
    return weight;
  }
  return 0;
}

}  // namespace

std::string OpenMetricsText(const std::vector<prometheus::MetricFamily>& families,
                            const Exemplars& exemplars) {
  std::string out;
  std::set<std::string> names;
  for (const prometheus::MetricFamily& family : families) names.insert(family.name);
  for (const prometheus::MetricFamily& family : families) {
    AppendFamily(family, names, exemplars, out);
  }
  absl::StrAppend(&out, "# EOF\n");
  return out;
}

bool PrefersOpenMetrics(absl::string_view accept) {
  const double weight = WeightOf(accept, "application/openmetrics-text");
  return weight > 0 && weight >= WeightOf(accept, "text/plain");
}

}  // namespace reprise

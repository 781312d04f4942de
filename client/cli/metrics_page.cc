#include "client/cli/metrics_page.h"

#include <httplib.h>

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace reprise::cli {
namespace {

// Reads `key="value",...}` and leaves `rest` after the brace. False if it is not of that form.
bool ReadLabels(absl::string_view& rest, std::map<std::string, std::string>& labels) {
  while (!absl::ConsumePrefix(&rest, "}")) {
    absl::ConsumePrefix(&rest, ",");
    const size_t equals = rest.find("=\"");
    if (equals == absl::string_view::npos) return false;
    std::string& value = labels[std::string(rest.substr(0, equals))];
    rest.remove_prefix(equals + 2);
    while (!rest.empty() && rest[0] != '"') {
      if (rest[0] == '\\' && rest.size() > 1) {
        rest.remove_prefix(1);
        value += rest[0] == 'n' ? '\n' : rest[0];
      } else {
        value += rest[0];
      }
      rest.remove_prefix(1);
    }
    if (!absl::ConsumePrefix(&rest, "\"")) return false;
  }
  return true;
}

std::optional<MetricSample> ParseLine(absl::string_view line) {
  if (line.empty() || line[0] == '#') return std::nullopt;
  const size_t end = line.find_first_of("{ ");
  if (end == absl::string_view::npos) return std::nullopt;
  MetricSample sample{.name = std::string(line.substr(0, end))};
  line.remove_prefix(end);
  if (absl::ConsumePrefix(&line, "{") && !ReadLabels(line, sample.labels)) return std::nullopt;
  if (!absl::SimpleAtod(absl::StripAsciiWhitespace(line), &sample.value)) return std::nullopt;
  return sample;
}

}  // namespace

std::vector<MetricSample> ParseMetrics(absl::string_view page) {
  std::vector<MetricSample> samples;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (auto sample = ParseLine(absl::StripTrailingAsciiWhitespace(line))) {
      samples.push_back(*std::move(sample));
    }
  }
  return samples;
}

absl::StatusOr<std::vector<MetricSample>> ScrapeMetrics(const std::string& address) {
  httplib::Client http("http://" + address);
  http.set_connection_timeout(2);
  const auto response = http.Get("/metrics");
  if (!response) {
    return absl::UnavailableError(absl::StrCat("no metrics at http://", address,
                                               "/metrics: ", httplib::to_string(response.error())));
  }
  if (response->status != 200) {
    return absl::UnavailableError(
        absl::StrCat("http://", address, "/metrics answers ", response->status));
  }
  return ParseMetrics(response->body);
}

}  // namespace reprise::cli

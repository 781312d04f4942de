#include "client/cli/load_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/table.h"

namespace reprise::cli {
namespace {

// The requests that one bucket served.
struct BucketRow {
  std::vector<double> milliseconds;
  std::map<std::string, int64_t> captures;  // counts, keyed by the value of `reprise.capture`
  std::set<int64_t> replays;
  int64_t units = 0;
  int64_t rows = 0;
};

// "b8_s128" -> (0, {8, 128}): buckets in the order of their numbers, "exact" and others last.
std::tuple<int, std::vector<int64_t>, std::string> BucketOrder(const std::string& bucket) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < bucket.size();) {
    if (!std::isdigit(static_cast<unsigned char>(bucket[i]))) {
      ++i;
      continue;
    }
    int64_t number = 0;
    for (; i < bucket.size() && std::isdigit(static_cast<unsigned char>(bucket[i])); ++i) {
      number = number * 10 + (bucket[i] - '0');
    }
    numbers.push_back(number);
  }
  // The last number first: sequences group better than batches.
  std::reverse(numbers.begin(), numbers.end());
  return {numbers.empty() ? 1 : 0, numbers, bucket};
}

std::string LatencyTable(const std::vector<double>& milliseconds) {
  Table table({{"latency", Table::Align::kLeft},
               {"mean", kRight},
               {"p50", kRight},
               {"p90", kRight},
               {"p95", kRight},
               {"p99", kRight},
               {"max", kRight}});
  const double sum = std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0);
  table.AddRow({"ms", Fixed(sum / static_cast<double>(milliseconds.size()), 2),
                Fixed(Percentile(milliseconds, 50), 2), Fixed(Percentile(milliseconds, 90), 2),
                Fixed(Percentile(milliseconds, 95), 2), Fixed(Percentile(milliseconds, 99), 2),
                Fixed(Percentile(milliseconds, 100), 2)});
  return table.Text();
}

// Returns the unit of throughput: tokens, or rows where requests have no length.
std::string Unit(const LoadResult& result) { return result.has_length ? "tokens" : "rows"; }
int64_t UnitsOf(const LoadResult& result, const Sample& sample) {
  if (sample.tokens >= 0) return sample.tokens;
  return (result.has_length ? sample.length : 1) * sample.batch;
}

std::vector<std::string> InOrder(const std::map<std::string, BucketRow>& buckets) {
  std::vector<std::string> names;
  for (const auto& [name, row] : buckets) names.push_back(name);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return BucketOrder(a) < BucketOrder(b);
  });
  return names;
}

std::string BucketTable(const std::map<std::string, BucketRow>& buckets, const std::string& unit) {
  Table table({{"bucket"},
               {"requests", kRight},
               {"replays", kRight},
               {"rows/replay", kRight},
               {"captured", kRight},
               {"waited", kRight},
               {"larger", kRight},
               {"eager", kRight},
               {unit, kRight},
               {"p50 ms", kRight},
               {"p99 ms", kRight}});
  for (const std::string& name : InOrder(buckets)) {
    const BucketRow& row = buckets.at(name);
    auto captures = [&row](const char* kind) -> std::string {
      const auto found = row.captures.find(kind);
      return found == row.captures.end() ? "-" : absl::StrCat(found->second);
    };
    const double replays = static_cast<double>(row.replays.size());
    table.AddRow({name.empty() ? "(none)" : name, absl::StrCat(row.milliseconds.size()),
                  row.replays.empty() ? "-" : absl::StrCat(row.replays.size()),
                  row.replays.empty() ? "-" : Fixed(static_cast<double>(row.rows) / replays, 1),
                  captures("captured"), captures("waited"), captures("larger"), captures("eager"),
                  Count(row.units), Fixed(Percentile(row.milliseconds, 50), 2),
                  Fixed(Percentile(row.milliseconds, 99), 2)});
  }
  return table.Text();
}

// All samples of a load, put together.
struct RequestTally {
  std::vector<double> milliseconds;  // only answered requests have one
  ErrorCounts errors;
  std::map<std::string, BucketRow> buckets;
  int64_t units = 0;
};

RequestTally RequestTallyOf(const LoadResult& result) {
  RequestTally tally;
  for (const Sample& sample : result.samples) {
    if (!sample.error.empty()) {
      ++tally.errors[sample.error];
      continue;
    }
    tally.milliseconds.push_back(sample.milliseconds);
    tally.units += UnitsOf(result, sample);
    BucketRow& row = tally.buckets[sample.bucket];
    row.milliseconds.push_back(sample.milliseconds);
    ++row.captures[sample.capture];
    if (sample.replay >= 0) row.replays.insert(sample.replay);
    row.units += UnitsOf(result, sample);
    row.rows += sample.batch;
  }
  return tally;
}

using OrderedJson = nlohmann::ordered_json;

OrderedJson LatencyJson(const std::vector<double>& milliseconds) {
  if (milliseconds.empty()) return OrderedJson::object();
  const double sum = std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0);
  return {{"mean", sum / static_cast<double>(milliseconds.size())},
          {"p50", Percentile(milliseconds, 50)},
          {"p90", Percentile(milliseconds, 90)},
          {"p95", Percentile(milliseconds, 95)},
          {"p99", Percentile(milliseconds, 99)},
          {"max", Percentile(milliseconds, 100)}};
}

}  // namespace

double Percentile(std::vector<double> values, double percent) {
  if (values.empty()) return 0;
  const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()));
  const size_t index = std::clamp<size_t>(static_cast<size_t>(rank), 1, values.size()) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(index), values.end());
  return values[index];
}

std::string ErrorTable(const ErrorCounts& errors) {
  if (errors.empty()) return "";
  Table table({{"failed", kRight}, {"error"}});
  for (const auto& [error, count] : errors) {
    table.AddRow({absl::StrCat(count), Shorten(error, 150)});
  }
  return absl::StrCat("\n", table.Text());
}

nlohmann::ordered_json ErrorsJson(const ErrorCounts& errors) {
  OrderedJson json = OrderedJson::array();
  for (const auto& [error, count] : errors) {
    json.push_back({{"error", error}, {"requests", count}});
  }
  return json;
}

std::string LoadReport(const LoadResult& result) {
  const RequestTally tally = RequestTallyOf(result);
  std::string text =
      absl::StrFormat("%s requests in %.2f s, %d failed\n%.1f requests/s, %.0f %s/s\n",
                      Count(result.samples.size()), result.seconds,
                      result.samples.size() - tally.milliseconds.size(),
                      static_cast<double>(tally.milliseconds.size()) / result.seconds,
                      static_cast<double>(tally.units) / result.seconds, Unit(result));
  if (!tally.milliseconds.empty()) {
    absl::StrAppend(&text, "\n", LatencyTable(tally.milliseconds), "\n",
                    BucketTable(tally.buckets, Unit(result)));
  }
  return text + ErrorTable(tally.errors);
}

std::string LoadJson(const LoadResult& result, const LoadOptions& options) {
  const RequestTally tally = RequestTallyOf(result);
  const auto answered = static_cast<double>(tally.milliseconds.size());
  OrderedJson json = {{"model", options.model},
                      {"concurrency", options.concurrency},
                      {"batch", options.batch},
                      {"seconds", result.seconds},
                      {"requests", result.samples.size()},
                      {"failed", result.samples.size() - tally.milliseconds.size()},
                      {"requests_per_second", answered / result.seconds},
                      {"unit", Unit(result)},
                      {"units", tally.units},
                      {"units_per_second", static_cast<double>(tally.units) / result.seconds},
                      {"latency_ms", LatencyJson(tally.milliseconds)},
                      {"buckets", OrderedJson::array()},
                      {"errors", ErrorsJson(tally.errors)}};
  for (const std::string& name : InOrder(tally.buckets)) {
    const BucketRow& row = tally.buckets.at(name);
    OrderedJson captures = OrderedJson::object();
    for (const auto& [kind, count] : row.captures) captures[kind] = count;
    json["buckets"].push_back({{"bucket", name},
                               {"requests", row.milliseconds.size()},
                               {"replays", row.replays.size()},
                               {"rows", row.rows},
                               {"units", row.units},
                               {"captures", std::move(captures)},
                               {"latency_ms", LatencyJson(row.milliseconds)}});
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace reprise::cli

#include "client/cli/generate_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/load_report.h"
#include "client/cli/table.h"

namespace reprise::cli {
namespace {

void AddTimes(Table& table, const std::string& name, const std::vector<double>& times) {
  if (times.empty()) return;
  const double sum = std::accumulate(times.begin(), times.end(), 0.0);
  std::vector<std::string> row = {name, Fixed(sum / static_cast<double>(times.size()), 2)};
  for (const double percent : {50, 90, 95, 99, 100}) {
    row.push_back(Fixed(Percentile(times, percent), 2));
  }
  table.AddRow(row);
}

// Returns a bar for each doubling of the time, from the shortest to the longest.
std::string Chart(const std::string& title, const std::vector<double>& times) {
  if (times.empty()) return "";
  constexpr int kWidth = 50;
  const auto step = [](double time) {
    return static_cast<int>(std::floor(2 * std::log2(std::max(time, 1e-3))));
  };
  std::map<int, int64_t> counts;
  for (const double time : times) ++counts[step(time)];
  int64_t most = 0;
  for (const auto& [at, count] : counts) most = std::max(most, count);
  std::string text = absl::StrCat("\n", title, "\n");
  for (int at = counts.begin()->first; at <= counts.rbegin()->first; ++at) {
    const int64_t count = counts.contains(at) ? counts[at] : 0;
    const auto length = static_cast<size_t>(
        std::ceil(kWidth * static_cast<double>(count) / static_cast<double>(most)));
    absl::StrAppendFormat(&text, "%10s ms %s %d\n", Fixed(std::exp2(at / 2.0), 2),
                          std::string(length, '#'), count);
  }
  return text;
}

// All samples of a load, put together.
struct TokenTally {
  std::vector<double> first, each, between, total;  // milliseconds
  ErrorCounts errors;
  int64_t prompt = 0, tokens = 0;
};

TokenTally TokenTallyOf(const GenerateLoadResult& result) {
  TokenTally tally;
  for (const GenerateSample& sample : result.samples) {
    if (!sample.error.empty()) {
      ++tally.errors[sample.error];
      continue;
    }
    tally.prompt += sample.prompt;
    tally.tokens += sample.tokens;
    tally.first.push_back(sample.first);
    tally.total.push_back(sample.total);
    tally.between.insert(tally.between.end(), sample.between.begin(), sample.between.end());
    if (sample.tokens > 1) {
      tally.each.push_back((sample.total - sample.first) / static_cast<double>(sample.tokens - 1));
    }
  }
  return tally;
}

using OrderedJson = nlohmann::ordered_json;

OrderedJson TimesJson(const std::vector<double>& times) {
  OrderedJson json = OrderedJson::object();
  if (times.empty()) return json;
  json["mean"] =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  for (const int percent : {50, 90, 95, 99}) {
    json[absl::StrCat("p", percent)] = Percentile(times, percent);
  }
  json["max"] = Percentile(times, 100);
  return json;
}

}  // namespace

std::string GenerateReport(const GenerateLoadResult& result) {
  const TokenTally tally = TokenTallyOf(result);
  const std::vector<double>& first = tally.first;
  std::string text = absl::StrFormat(
      "%s requests in %.2f s, %d failed\n%.1f new tokens/s, %.1f prompt tokens/s, %.2f "
      "requests/s\n",
      Count(result.samples.size()), result.seconds, result.samples.size() - first.size(),
      static_cast<double>(tally.tokens) / result.seconds,
      static_cast<double>(tally.prompt) / result.seconds,
      static_cast<double>(first.size()) / result.seconds);
  if (!first.empty()) {
    Table table({{"ms", Table::Align::kLeft},
                 {"mean", kRight},
                 {"p50", kRight},
                 {"p90", kRight},
                 {"p95", kRight},
                 {"p99", kRight},
                 {"max", kRight}});
    AddTimes(table, "time to first token", first);
    AddTimes(table, "time per output token", tally.each);
    AddTimes(table, "between two tokens", tally.between);
    AddTimes(table, "whole answer", tally.total);
    absl::StrAppend(&text, "\n", table.Text(), Chart("time to first token", first),
                    Chart("between two tokens", tally.between));
  }
  return text + ErrorTable(tally.errors);
}

std::string GenerateJson(const GenerateLoadResult& result, const GenerateLoadOptions& options) {
  const TokenTally tally = TokenTallyOf(result);
  const OrderedJson json = {
      {"model", options.model},
      {"concurrency", options.concurrency},
      {"rate", options.rate},
      {"seconds", result.seconds},
      {"requests", result.samples.size()},
      {"failed", result.samples.size() - tally.first.size()},
      {"new_tokens", tally.tokens},
      {"prompt_tokens", tally.prompt},
      {"new_tokens_per_second", static_cast<double>(tally.tokens) / result.seconds},
      {"first_token_ms", TimesJson(tally.first)},
      {"per_token_ms", TimesJson(tally.each)},
      {"between_tokens_ms", TimesJson(tally.between)},
      {"total_ms", TimesJson(tally.total)},
      {"errors", ErrorsJson(tally.errors)}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace reprise::cli

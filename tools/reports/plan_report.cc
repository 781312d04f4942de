#include "tools/reports/plan_report.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/table.h"
#include "runtime/json/json_writer.h"

namespace reprise::cli {
namespace {

constexpr int kChartWidth = 60;
// Below the batch buckets of a fresh server, a product of more than this needs a line of its own.
constexpr int64_t kDefaultMaxBatchTokens = 4096;

const Strategy kStrategies[] = {Strategy::kMaximum, Strategy::kPowersOfTwo, Strategy::kLinear,
                                Strategy::kPercentile, Strategy::kSolver};
// The sign of each strategy in the chart.
constexpr char kMarks[] = {'m', '2', 'l', 'p', 's'};

std::string GridTable(const PlanTable& table, absl::string_view title,
                      const std::function<std::string(const Judgement&)>& cell) {
  std::vector<Table::Column> columns = {{"k", kRight}};
  for (Strategy strategy : kStrategies) {
    columns.push_back({std::string(StrategyName(strategy)), kRight});
  }
  Table text(columns);
  for (int k = 1; k <= table.most; ++k) {
    std::vector<std::string> row = {absl::StrCat(k)};
    for (Strategy strategy : kStrategies) row.push_back(cell(table.at(k, strategy)));
    text.AddRow(row);
  }
  return absl::StrCat("\n", title, "\n", text.Text());
}

std::string WasteText(const Judgement& judged) {
  return absl::StrFormat("%.1f %%", 100 * judged.waste);
}

std::string TimeText(const Judgement& judged) { return absl::StrFormat("%.3f", judged.time_ratio); }

std::string MemoryText(const Judgement& judged, const PlanFacts& facts) {
  if (facts.bytes_per_element > 0) {
    return Bytes(static_cast<uint64_t>(judged.held_elements * facts.bytes_per_element));
  }
  return Count(static_cast<uint64_t>(judged.held_elements));
}

// Returns a line for each k: the solver's waste as a bar, the others as letters where theirs are.
std::string WasteChart(const PlanTable& table) {
  double most = 0;
  for (const auto& row : table.rows) {
    for (const Judgement& judged : row) most = std::max(most, judged.waste);
  }
  if (most <= 0) return "";
  std::string text = absl::StrFormat(
      "\nwaste by k: the bar is the solver; p percentile, l linear 128, 2 powers of two, m "
      "maximum\n"
      "     0 %%%s%.1f %%\n",
      std::string(kChartWidth - 6, ' '), 100 * most);
  for (int k = 1; k <= table.most; ++k) {
    const auto column = [&](Strategy strategy) {
      return static_cast<int>(std::lround(table.at(k, strategy).waste / most * (kChartWidth - 1)));
    };
    const int bar = column(Strategy::kSolver);
    std::string line(kChartWidth, ' ');
    for (int i = 0; i < 4; ++i) line[column(kStrategies[i])] = kMarks[i];
    std::string drawn;
    for (int i = 0; i < kChartWidth; ++i) {
      if (i < bar && line[i] == ' ') {
        drawn += "\u2588";
      } else {
        drawn += line[i];
      }
    }
    drawn.erase(drawn.find_last_not_of(' ') + 1);
    absl::StrAppendFormat(&text, "%4d %s\n", k, drawn);
  }
  return text;
}

// Returns a column for each range of lengths, eight heights, and below it where the boundaries are.
std::string HistogramText(const PlannedLengths& lengths, const Judgement& chosen) {
  static constexpr const char* kHeights[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                             "\u2585", "\u2586", "\u2587", "\u2588"};
  const double largest = static_cast<double>(lengths.largest());
  const auto column = [&](int64_t size) {
    return std::min(kChartWidth - 1,
                    static_cast<int>(static_cast<double>(size) / largest * (kChartWidth - 1)));
  };
  std::vector<double> weights(kChartWidth, 0);
  for (const WeightedSize& one : lengths.longest) weights[column(one.size)] += one.weight;
  const double most = *std::max_element(weights.begin(), weights.end());
  std::string text = "\nlengths as they are padded, and the solver's boundaries (^)\n     ";
  for (double weight : weights) {
    text += kHeights[weight <= 0 ? 0 : std::max(1, static_cast<int>(weight / most * 8))];
  }
  std::string marks(kChartWidth, ' ');
  for (int64_t size : chosen.boundaries) marks[column(size)] = '^';
  marks.erase(marks.find_last_not_of(' ') + 1);
  absl::StrAppend(&text, "\n     ", marks, "\n     0",
                  std::string(kChartWidth - 1 - absl::StrCat(lengths.largest()).size(), ' '),
                  lengths.largest(), "\n");
  return text;
}

}  // namespace

std::string JoinSizes(const std::vector<int64_t>& sizes) { return absl::StrJoin(sizes, ","); }

std::string PlanText(const PlannedLengths& lengths, const PlanTable& table,
                     const PlanFacts& facts) {
  const Judgement& chosen = table.at(facts.chosen, Strategy::kSolver);
  double replays = 0;
  for (const WeightedSize& one : lengths.replays) replays += one.weight;
  std::string text = absl::StrFormat("%s: %s lengths", facts.source,
                                     Count(static_cast<uint64_t>(std::llround(lengths.rows))));
  if (lengths.rows_at_once > 1) {
    absl::StrAppendFormat(&text, " in %s batches of %d, each padded to its longest",
                          Count(static_cast<uint64_t>(std::llround(replays))),
                          lengths.rows_at_once);
  }
  absl::StrAppendFormat(&text,
                        "\n%d distinct shapes, from %d to %d; mean length %.1f. Captured one by "
                        "one they are %d recipes.\n",
                        lengths.distinct(), lengths.longest.front().size, lengths.largest(),
                        lengths.valid_elements / lengths.rows, lengths.distinct());
  if (lengths.rows_at_once > 1) {
    double longest = 0;
    for (const WeightedSize& one : lengths.longest) {
      longest += one.weight * static_cast<double>(one.size);
    }
    absl::StrAppendFormat(&text, "Batching alone pads %.1f %%: no boundary can do better.\n",
                          100 * (1 - lengths.valid_elements / longest));
  }
  text += HistogramText(lengths, chosen);
  text += WasteChart(table);
  text += GridTable(table, "waste: share of the computed elements that no one sent", WasteText);
  text += GridTable(
      table,
      facts.measured ? "time: measured replays, against replays at the exact length"
                     : "time against exact lengths, an element taken to cost the same everywhere",
      TimeText);
  text += GridTable(table,
                    facts.bytes_per_element > 0
                        ? "memory of the recipes"
                        : "memory: elements that the recipes hold, rows times length",
                    [&](const Judgement& judged) { return MemoryText(judged, facts); });
  text += GridTable(table, "captures", [&](const Judgement& judged) {
    if (facts.capture_ms <= 0) return absl::StrCat(judged.captures);
    return absl::StrFormat("%d, %s", judged.captures,
                           Seconds(1e-3 * facts.capture_ms * static_cast<double>(judged.captures)));
  });
  Table boundaries({{"k", kRight}, {"solver's boundaries"}, {"percentiles"}});
  for (int k = 1; k <= table.most; ++k) {
    boundaries.AddRow({absl::StrCat(k), JoinSizes(table.at(k, Strategy::kSolver).boundaries),
                       JoinSizes(table.at(k, Strategy::kPercentile).boundaries)});
  }
  absl::StrAppend(&text, "\n", boundaries.Text());
  return text;
}

std::string PlanConfig(const PlannedLengths& lengths, const Judgement& chosen,
                       const PlanFacts& facts) {
  const auto line = [](absl::string_view key, absl::string_view value) {
    return absl::StrFormat("parameters { key: \"%s\" value { string_value: \"%s\" } }\n", key,
                           value);
  };
  const std::string key = facts.axis == "sequence" ? "reprise.sequence_buckets"
                                                   : absl::StrCat("reprise.buckets.", facts.axis);
  std::string text = line(key, JoinSizes(chosen.boundaries));
  const int64_t product = chosen.boundaries.back() * lengths.rows_at_once;
  if (lengths.rows_at_once > 1 && product > kDefaultMaxBatchTokens) {
    text += line("reprise.max_batch_tokens", absl::StrCat(product));
  }
  return text;
}

namespace {

void WriteJudgement(int k, Strategy strategy, const Judgement& judged, const PlanFacts& facts,
                    JsonWriter& json) {
  json.Object([&] {
    json.Member("k", k);
    json.Member("strategy", StrategyName(strategy));
    json.List("buckets", judged.boundaries);
    json.Member("waste", judged.waste);
    json.Member("time_ratio", judged.time_ratio);
    json.Member("captures", judged.captures);
    json.Member("held_elements", judged.held_elements);
    if (facts.bytes_per_element > 0) {
      json.Member("held_bytes", judged.held_elements * facts.bytes_per_element);
    }
    json.Member("beyond", judged.beyond);
  });
}

}  // namespace

std::string PlanJson(const PlannedLengths& lengths, const PlanTable& table,
                     const PlanFacts& facts) {
  JsonWriter json(JsonForm::kIndented);
  json.Object([&] {
    json.Member("source", facts.source);
    json.Member("axis", facts.axis);
    json.Member("rows", lengths.rows);
    json.Member("distinct", lengths.distinct());
    json.Member("longest", lengths.largest());
    json.Member("measured", facts.measured);
    json.Array("plans", [&] {
      for (size_t k = 1; k <= table.rows.size(); ++k) {
        for (int i = 0; i < kNumStrategies; ++i) {
          const auto strategy = static_cast<Strategy>(i);
          WriteJudgement(static_cast<int>(k), strategy, table.at(static_cast<int>(k), strategy),
                         facts, json);
        }
      }
    });
    const Judgement& chosen = table.at(facts.chosen, Strategy::kSolver);
    json.Key("chosen");
    WriteJudgement(facts.chosen, Strategy::kSolver, chosen, facts, json);
    json.Member("config", PlanConfig(lengths, chosen, facts));
  });
  return json.Take();
}

}  // namespace reprise::cli

// JudgeShapeFile: the report of shapes that were written down.

#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/bucket/dynamicity.h"
#include "runtime/bucket/dynamicity_message.h"
#include "runtime/bucket/plan.h"
#include "runtime/engine/model/model_options.h"
#include "tools/reports/dynamicity_report.h"

namespace reprise::cli {
namespace {

constexpr int kAdvisedBuckets = 8;

// Each dim of each input is a column; those that are equal in every row are one axis.
struct Columns {
  std::vector<std::string> names;           // "ids[1], mask[1]"
  std::vector<std::vector<int64_t>> sizes;  // one list a row
};

Columns FindColumns(const ShapeColumns& shapes) {
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> columns;  // one list a dim, with an element a row
  for (size_t input = 0; input < shapes.inputs.size(); ++input) {
    size_t rank = 0;
    for (const auto& row : shapes.rows) rank = std::max(rank, row[input].size());
    for (size_t d = 0; d < rank; ++d) {
      names.push_back(rank == 1 ? shapes.inputs[input]
                                : absl::StrCat(shapes.inputs[input], "[", d, "]"));
      std::vector<int64_t>& column = columns.emplace_back();
      for (const auto& row : shapes.rows) {
        column.push_back(d < row[input].size() ? row[input][d] : 0);
      }
    }
  }
  Columns result;
  std::map<std::vector<int64_t>, size_t> known;
  std::vector<size_t> kept;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto [it, is_new] = known.emplace(columns[i], result.names.size());
    if (is_new) {
      result.names.push_back(names[i]);
      kept.push_back(i);
    } else {
      absl::StrAppend(&result.names[it->second], ", ", names[i]);
    }
  }
  for (size_t row = 0; row < shapes.rows.size(); ++row) {
    std::vector<int64_t>& sizes = result.sizes.emplace_back();
    for (size_t i : kept) sizes.push_back(columns[i][row]);
  }
  return result;
}

// The recipes of a server that has no buckets: one a shape, of which the least recently used goes
// when there are more than `reprise.max_exact`.
class ExactRecipes {
 public:
  // Uses a recipe; false: there was none, and it is captured.
  bool Use(const std::vector<int64_t>& sizes) {
    const auto it = std::find(recent_.begin(), recent_.end(), sizes);
    const bool known = it != recent_.end();
    if (known) recent_.erase(it);
    recent_.push_back(sizes);
    if (recent_.size() > static_cast<size_t>(ModelOptions().max_exact))
      recent_.erase(recent_.begin());
    return known;
  }

 private:
  std::vector<std::vector<int64_t>> recent_;  // the least recently used first
};

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrJoin(shape, "x"); }

void Advise(const ShapeTable& table, const Dynamicity& judged, v1::ModelDynamicity& report) {
  if (judged.verdict == DynamicityVerdict::kLittle) {
    report.add_advice(
        "nothing: the first request of each shape is captured, and a recipe of each is kept. "
        "reprise.warmup captures them before traffic comes");
    return;
  }
  std::map<int64_t, double> counts;
  for (const ShapeRow& row : table.rows) {
    const int64_t size = row.sizes[judged.cause];
    if (size > 0) counts[size] += static_cast<double>(row.all.requests);
  }
  std::vector<WeightedSize> sizes;
  for (const auto& [size, weight] : counts) sizes.push_back({size, weight});
  if (sizes.empty()) return;
  const BoundaryCost cost = [](int64_t size) { return static_cast<double>(size); };
  const Boundaries best = SolveBoundaries(sizes, kAdvisedBuckets, cost);
  report.add_advice(
      absl::StrFormat("let axis %s be padded to %d buckets, %s: %.1f%% of the computed elements "
                      "are padding then. A "
                      "server without configuration finds them by itself",
                      report.cause(), best.sizes.size(), absl::StrJoin(best.sizes, ","),
                      100 * Judge(PlanCounts(sizes), best.sizes, cost).waste));
  report.add_advice("`reprise check MODEL` says whether the model may be padded along it");
}

}  // namespace

v1::ModelDynamicity JudgeShapeFile(const ShapeColumns& shapes, absl::string_view source,
                                   int most_shapes) {
  const Columns columns = FindColumns(shapes);
  const bool counted = std::any_of(shapes.counts.begin(), shapes.counts.end(),
                                   [](double count) { return count != 1; });
  const auto rows = static_cast<int64_t>(shapes.rows.size());
  ShapeRecorder recorder(counted ? std::numeric_limits<int64_t>::max()
                                 : std::max<int64_t>(rows / 2, 1));
  std::map<std::vector<int64_t>, size_t> first;  // row of each shape
  // The one capture of a single shape says nothing of how much shapes vary.
  const bool varies =
      std::any_of(columns.sizes.begin(), columns.sizes.end(),
                  [&](const std::vector<int64_t>& sizes) { return sizes != columns.sizes[0]; });
  ExactRecipes recipes;
  for (size_t row = 0; row < shapes.rows.size(); ++row) {
    const std::vector<int64_t>& sizes = columns.sizes[row];
    const auto requests = static_cast<int64_t>(shapes.counts[row]);
    if (varies && requests > 0 && !recipes.Use(sizes)) {
      recorder.Record(sizes, ShapeService::kOutside);
      if (requests > 1) recorder.Record(sizes, ShapeService::kReady, requests - 1);
    } else {
      recorder.Record(sizes, ShapeService::kReady, requests);
    }
    first.emplace(sizes, row);
  }
  const ShapeTable table = recorder.Snapshot();
  const Dynamicity judged = JudgeShapes(table, /*recent=*/false);
  v1::ModelDynamicity report;
  report.set_model(std::string(source));
  for (const std::string& input : shapes.inputs) report.add_inputs(input);
  const auto inputs_of = [&](const ShapeRow& row) {
    std::vector<std::string> inputs;
    for (const auto& input : shapes.rows[first.at(row.sizes)]) inputs.push_back(ShapeText(input));
    return inputs;
  };
  FillDynamicity(table, judged, /*recent=*/false, columns.names,
                 static_cast<size_t>(std::max(most_shapes, 0)), inputs_of, report);
  Advise(table, judged, report);
  return report;
}

}  // namespace reprise::cli

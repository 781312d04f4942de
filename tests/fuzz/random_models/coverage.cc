#include "tests/fuzz/random_models/coverage.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "tests/fuzz/random_models/evaluation.h"

namespace reprise::fuzz {
namespace {

constexpr const char* kVerdicts[] = {"proved", "packed", "refused"};

// Returns the words of a message without its numbers and names, which differ from model to model.
std::string Kind(absl::string_view message) {
  std::string kind;
  bool quoted = false;
  for (const char c : message.substr(0, 160)) {
    if (c == '\'') quoted = !quoted;
    if (quoted || (c >= '0' && c <= '9')) continue;
    kind += c == '\n' ? ' ' : c;
  }
  return kind;
}

// A branch or a loop that sizes alone decide.
bool BranchesBySizes(const Graph& graph) {
  const std::vector<bool> data = DependsOnData(graph);
  return std::ranges::any_of(graph.NodeIds(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return (node.op == "If" || node.op == "Loop" || node.op == "Where") &&
           graph.value(node.inputs[0]).kind == Value::Kind::kResult && !data[node.inputs[0]];
  });
}

std::string MostFrequent(const std::map<std::string, int64_t>& counts, size_t most) {
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [name, count] : counts) sorted.emplace_back(-count, name);
  std::ranges::sort(sorted);
  std::string text;
  for (size_t i = 0; i < std::min(most, sorted.size()); ++i) {
    absl::StrAppend(&text, "\n    ", -sorted[i].first, " x ", sorted[i].second);
  }
  return text;
}

}  // namespace

void Coverage::Add(const TestCase& test, const Verdict& verdict) {
  ++models_;
  if (!verdict.refused.ok()) {
    ++refused_[Kind(verdict.refused.message())];
    return;
  }
  ++loaded_;
  packed_ += verdict.packed;
  cut_ += verdict.cut;
  by_sizes_ += BranchesBySizes(test.graph);
  answers_ += verdict.answers;
  padded_ += verdict.padded;
  shared_ += verdict.shared;
  doubtful_ += verdict.doubtful;
  beyond_end_ += verdict.beyond_end;
  for (const std::string& refusal : verdict.refusals) ++refusals_[Kind(refusal)];
  for (const auto& [name, count] : verdict.certificates) certificates_[name] += count;
  std::set<std::string> ops;
  for (const NodeId id : test.graph.NodeIds()) ops.insert(test.graph.node(id).op);
  for (const std::string& op : ops) ++ops_[op];
}

std::vector<std::string> Coverage::MissingOps() const {
  std::vector<std::string> missing;
  for (const OpRow& row : AllOps()) {
    if (!row.Has(kInternal) && !ops_.contains(std::string(row.name)))
      missing.emplace_back(row.name);
  }
  return missing;
}

double Coverage::ShareOfOps() const {
  const auto all =
      std::ranges::count_if(AllOps(), [](const OpRow& row) { return !row.Has(kInternal); });
  return 1 - static_cast<double>(MissingOps().size()) / static_cast<double>(all);
}

std::vector<std::string> Coverage::MissingVerdicts() const {
  std::vector<std::string> missing;
  for (const char* verdict : kVerdicts) {
    if (!certificates_.contains(verdict)) missing.emplace_back(verdict);
  }
  if (packed_ == 0) missing.emplace_back("packed");
  return missing;
}

std::string Coverage::Report() const {
  std::string text = absl::StrCat(
      "models: ", models_, ", loaded ", loaded_, ", branching by sizes ", by_sizes_, ", packed ",
      packed_, ", cut at data ", cut_, "\n", "answers: ", answers_, ", padded ", padded_,
      ", in company ", shared_, ", differences within rounding or that did not come again ",
      doubtful_, ", with an index behind the end of a padded request ", beyond_end_, "\n", "axes:");
  for (const auto& [name, count] : certificates_) absl::StrAppend(&text, " ", name, " ", count);
  absl::StrAppend(
      &text, FormatText("\nops: %.1f %% of the rows that a model may name", 100 * ShareOfOps()));
  if (!MissingOps().empty())
    absl::StrAppend(&text, "; missing: ", absl::StrJoin(MissingOps(), ", "));
  if (!refused_.empty()) absl::StrAppend(&text, "\nmodels refused:", MostFrequent(refused_, 8));
  if (!refusals_.empty()) absl::StrAppend(&text, "\nrequests refused:", MostFrequent(refusals_, 8));
  return text;
}

}  // namespace reprise::fuzz

#include "runtime/engine/types/graph_history.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/graph_diff.h"
#include "runtime/graph/text.h"

namespace reprise {
namespace {

// A limit for the text of one graph, and for the number of models.
constexpr size_t kMostText = size_t{1} << 20;
constexpr size_t kMostModels = 64;

}  // namespace

std::string RecipeText(const RecipeKey& key) {
  return absl::StrCat(key.binding.ToString(), ", ", key.packing, ", ", key.precision);
}

void GraphHistory::Remember(const std::string& name, const Graph& graph,
                            std::set<std::string> recipes) {
  if (recipes.empty()) return;
  std::string text = Print(graph);
  if (text.size() > kMostText) return;
  MutexLock lock(mutex_);
  if (past_.size() >= kMostModels && past_.count(name) == 0) past_.erase(past_.begin());
  past_[name] = {.graph = std::move(text), .recipes = std::move(recipes)};
}

std::shared_ptr<const GraphChange> GraphHistory::ChangeOf(const std::string& name,
                                                          const Graph& now) const {
  Past past;
  {
    MutexLock lock(mutex_);
    const auto it = past_.find(name);
    if (it == past_.end()) return nullptr;
    past = it->second;
  }
  auto change = std::make_shared<GraphChange>();
  change->causes = CausesSince(past.graph, now);
  change->recipes = std::move(past.recipes);
  return change->causes.empty() ? nullptr : change;
}

std::optional<Graph> GraphHistory::GraphOf(const std::string& name) const {
  std::string text;
  {
    MutexLock lock(mutex_);
    const auto it = past_.find(name);
    if (it == past_.end()) return std::nullopt;
    text = it->second.graph;
  }
  absl::StatusOr<Graph> graph = Parse(text);
  return graph.ok() ? std::optional<Graph>(*std::move(graph)) : std::nullopt;
}

std::vector<std::string> CausesSince(absl::string_view was, const Graph& now) {
  const absl::StatusOr<Graph> before = was.empty() ? absl::NotFoundError("") : Parse(was);
  return before.ok() ? DiffGraphs(*before, now).causes : std::vector<std::string>();
}

}  // namespace reprise

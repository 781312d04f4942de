// GraphHistory: the graphs of models that were loaded before under the same name, so that a capture
// can say how a model has changed since.
//
// Graphs are kept as text, which holds nothing of the model's files. Only a graph that recipes were
// captured for counts as one that a model had.
//
// Threads: all methods from any.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "runtime/graph/node.h"
#include "runtime/recipe/key.h"

namespace reprise {

// How a model differs from the one that was served under its name before.
struct GraphChange {
  std::vector<std::string> causes;  // see DiffGraphs
  // RecipeText of the recipes that the graph before had: only captures of these are due to the
  // change.
  std::set<std::string> recipes;
};

// Returns the sizes and the policy of a key: the name of a recipe without its graph.
std::string RecipeText(const RecipeKey& key);

class GraphHistory {
 public:
  // Remembers a model `name` that is gone, with the `recipes` that were captured for its graph.
  void Remember(const std::string& name, const Graph& graph, std::set<std::string> recipes);
  // Returns the change since, for a model that is loaded now. Null where nothing is remembered, or
  // the graph is the same.
  std::shared_ptr<const GraphChange> ChangeOf(const std::string& name, const Graph& now) const;

  // Returns the graph that was served under `name` last; nullopt where none is remembered.
  std::optional<Graph> GraphOf(const std::string& name) const;

 private:
  struct Past {
    std::string graph;  // as text
    std::set<std::string> recipes;
  };
  mutable Mutex mutex_;
  std::map<std::string, Past> past_ GUARDED_BY(mutex_);
};

// Returns the causes for which `now` is another graph than `was`, a text of one; empty where that
// cannot be read.
std::vector<std::string> CausesSince(absl::string_view was, const Graph& now);

}  // namespace reprise

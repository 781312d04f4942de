// HeldGraph: a graph as a member of a class whose header does not include the graph's. Copying it
// copies the graph; a const one is a const graph.
#pragma once

#include <memory>

namespace reprise {

class Graph;

class HeldGraph {
 public:
  HeldGraph();
  HeldGraph(Graph graph);  // NOLINT(google-explicit-constructor): takes the place of a graph
  HeldGraph(const HeldGraph& other);
  HeldGraph(HeldGraph&& other) noexcept;
  HeldGraph& operator=(const HeldGraph& other);
  HeldGraph& operator=(HeldGraph&& other) noexcept;
  ~HeldGraph();

  Graph& operator*() { return *graph_; }
  const Graph& operator*() const { return *graph_; }
  Graph* operator->() { return graph_.get(); }
  const Graph* operator->() const { return graph_.get(); }

 private:
  std::unique_ptr<Graph> graph_;  // null where it was moved from
};

}  // namespace reprise

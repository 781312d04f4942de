#include "runtime/graph/held_graph.h"

#include <utility>

#include "runtime/graph/graph.h"

namespace reprise {

HeldGraph::HeldGraph() : graph_(std::make_unique<Graph>()) {}
HeldGraph::HeldGraph(Graph graph) : graph_(std::make_unique<Graph>(std::move(graph))) {}
HeldGraph::HeldGraph(const HeldGraph& other) : graph_(std::make_unique<Graph>(*other.graph_)) {}
HeldGraph::HeldGraph(HeldGraph&& other) noexcept = default;
HeldGraph& HeldGraph::operator=(const HeldGraph& other) {
  if (this != &other) graph_ = std::make_unique<Graph>(*other.graph_);
  return *this;
}
HeldGraph& HeldGraph::operator=(HeldGraph&& other) noexcept = default;
HeldGraph::~HeldGraph() = default;

}  // namespace reprise

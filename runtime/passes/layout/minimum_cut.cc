#include "runtime/passes/layout/minimum_cut.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr int kNotReached = -1;
// Room that rounding left.
constexpr double kNothing = 1e-9;

}  // namespace

size_t MinimumCut::Add() {
  edges_of_.emplace_back();
  return edges_of_.size() - 3;
}

void MinimumCut::AddEdge(size_t from, size_t to, double room) {
  edges_of_[from].push_back({to, room, edges_of_[to].size()});
  edges_of_[to].push_back({from, 0, edges_of_[from].size() - 1});
}

void MinimumCut::SetCosts(size_t thing, double false_cost, double true_cost) {
  // A thing on the source's side is false: its false_cost lies between it and the sink.
  AddEdge(thing + 2, kSink, false_cost);
  AddEdge(kSource, thing + 2, true_cost);
}

void MinimumCut::Charge(size_t thing, size_t other, double cost) {
  AddEdge(thing + 2, other + 2, cost);
}

bool MinimumCut::FindLevels() {
  levels_.assign(edges_of_.size(), kNotReached);
  levels_[kSource] = 0;
  std::vector<size_t> reached = {kSource};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const Edge& edge : edges_of_[reached[i]]) {
      if (edge.room <= kNothing || levels_[edge.to] != kNotReached) continue;
      levels_[edge.to] = levels_[reached[i]] + 1;
      reached.push_back(edge.to);
    }
  }
  return levels_[kSink] != kNotReached;
}

// Pushes flow, in a loop, not a recursion: paths are as long as a model is deep.
double MinimumCut::Push() {
  std::vector<Edge*> path;
  size_t node = kSource;
  while (node != kSink) {
    Edge* way = nullptr;
    for (size_t& at = next_[node]; at < edges_of_[node].size(); ++at) {
      Edge& edge = edges_of_[node][at];
      if (edge.room <= kNothing || levels_[edge.to] != levels_[node] + 1) continue;
      way = &edge;
      break;
    }
    if (way != nullptr) {
      path.push_back(way);
      node = way->to;
      continue;
    }
    if (path.empty()) return 0;
    levels_[node] = kNotReached;  // A dead end.
    const Edge* last = path.back();
    node = edges_of_[last->to][last->back].to;
    path.pop_back();
  }
  double most = kNever;
  for (const Edge* edge : path) most = std::min(most, edge->room);
  for (Edge* edge : path) {
    edge->room -= most;
    edges_of_[edge->to][edge->back].room += most;
  }
  return most;
}

std::vector<bool> MinimumCut::Solve() {
  while (FindLevels()) {
    next_.assign(edges_of_.size(), 0);
    while (Push() > 0) {
    }
  }
  // Things that still reach the sink are true: the least cut with the fewest true labels.
  std::vector<bool> labels(edges_of_.size() - 2);
  std::vector<bool> to_sink(edges_of_.size(), false);
  std::vector<size_t> reached = {kSink};
  to_sink[kSink] = true;
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const Edge& edge : edges_of_[reached[i]]) {
      const Edge& back = edges_of_[edge.to][edge.back];
      if (back.room <= kNothing || to_sink[edge.to]) continue;
      to_sink[edge.to] = true;
      reached.push_back(edge.to);
    }
  }
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = to_sink[i + 2];
  return labels;
}

}  // namespace reprise

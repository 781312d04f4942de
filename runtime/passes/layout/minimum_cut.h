// MinimumCut: things that each get one of two labels, for the least cost in all.
//
// The least cut of a network between a source and a sink, by Dinic's algorithm (1970): shortest
// augmenting paths, level by level. Costs are not negative; kNever may not be paid.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace reprise {

class MinimumCut {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // Things 0 to count - 1.
  explicit MinimumCut(size_t count) : edges_of_(count + 2) {}

  // Adds a thing, which costs nothing.
  size_t Add();
  // Sets the cost of each of the two labels of a thing.
  void SetCosts(size_t thing, double false_cost, double true_cost);
  // `cost` is paid where `thing` is false and `other` is true.
  void Charge(size_t thing, size_t other, double cost);

  // Returns the labels that cost least; among several such choices, the one with the fewest true
  // labels.
  std::vector<bool> Solve();

 private:
  struct Edge {
    size_t to;
    double room;
    size_t back;  // the index of the reverse edge, among the edges of `to`
  };
  static constexpr size_t kSource = 0, kSink = 1;  // false, true

  void AddEdge(size_t from, size_t to, double room);
  bool FindLevels();
  // Along one more shortest path; how much.
  double Push();

  std::vector<std::vector<Edge>> edges_of_;
  std::vector<int> levels_;
  std::vector<size_t> next_;  // edge of a node that may still take more
};

}  // namespace reprise

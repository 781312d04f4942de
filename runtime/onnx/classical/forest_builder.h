// From the trees of a file to the one form that runtime/ops/classical/forest.h describes.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/tensor.h"
#include "runtime/ops/classical/forest.h"

namespace reprise {

// The question that a node of a file asks of its column; yes leads to one child, no to the other.
enum class TreeQuestion : uint8_t { kAtMost, kLess, kAtLeast, kMore, kEqual, kOther, kLeaf };

// Trees as a file lists them. Children are indices of nodes; a child may have several parents.
struct SourceTrees {
  struct Node {
    double threshold = 0;
    int64_t column = 0;
    int32_t yes = -1, no = -1;
    TreeQuestion question = TreeQuestion::kLeaf;
    bool missing_is_yes = false;
    int32_t leaf = -1;  // its number where it is one
  };
  struct Weight {
    int32_t leaf;
    int32_t target;
    double value;
  };
  std::vector<Node> nodes;
  std::vector<int32_t> roots;
  std::vector<Weight> weights;  // listed in any order
  int32_t leaves = 0;
  int64_t targets = 1;
  ops::LeafSum sum = ops::LeafSum::kSum;
  bool is_double = false;  // thresholds and weights are, else they are floats
};

struct BuiltForest {
  ops::ForestShape shape;
  Tensor bytes;
};

// INVALID_ARGUMENT for trees with cycles, and for columns and targets out of range.
absl::StatusOr<BuiltForest> BuildForest(const SourceTrees& trees);

}  // namespace reprise

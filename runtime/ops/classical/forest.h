// Ensembles of decision trees, in one form for every way in which a file may write them.
//
// reprise.TreeEnsemble: inputs X [rows, columns] (f32 or f64) and the forest, bytes in the layout
// below; the result is [rows, chunks, targets] f64: the sums that the trees of each chunk give to
// each target. Chunks are fixed with the model, so that sums are added in one order for any threads
// and batch-mates. A target that no leaf gave anything to is NaN (unless `complete`).
//
// A node is one question: is its column at most its threshold? If so its first child is next, else
// the second one, which follows the first. NaN goes to the second child. Other questions of a file
// are rewritten when it is read: x < t is x <= the float before t; a question that sends missing
// numbers the other way asks the mirrored column, -x. The columns are the first `features` of X,
// then the same negated if `mirrored`, then one that is NaN: questions about it always have the
// same answer, in a leaf the leaf itself.
//
//   next = node + delta + (column <= threshold ? 0 : 1)
//
// The threshold of a leaf is its number (kScalar) or, as bits, its index.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/ops/classical/classical_op.h"
#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// The form of the numbers that leaves give.
enum class LeafKind : int64_t {
  kScalar,  // one number, all leaves of a tree to the same target; every chunk has all targets
  kDense,   // a number to each target: weights [leaves, targets]
  kSparse,  // weights [entries] with their targets; leaf i has the entries from first[i] on
};

enum class LeafSum : int64_t { kSum, kMin, kMax };

// The attributes of a node: all but the bytes. They are part of a recipe's key.
struct ForestShape {
  int64_t targets = 1;
  int64_t features = 0;
  bool mirrored = false;
  int64_t trees = 0, chunks = 1, nodes = 0;
  int64_t leaves = 0;   // kDense, kSparse
  int64_t entries = 0;  // kSparse
  LeafKind kind = LeafKind::kScalar;
  LeafSum sum = LeafSum::kSum;
  bool complete = true;  // all leaves give something to every target, be it 0: sums begin with 0
  // How a node stores its column: in the low 8, 12 or 16 bits of a word whose other bits are delta,
  // of forests of f32; 32: in a word of its own.
  int64_t feature_bits = 32;
  int64_t deepest = 0;  // steps from a root to a leaf, at most

  int64_t columns() const { return features * (mirrored ? 2 : 1) + 1; }
  int64_t nothing() const { return columns() - 1; }  // the column that is NaN

  Attributes ToAttributes() const;
  static ForestShape From(const Attributes& attributes);
};

struct TreePlace {
  int32_t root;
  int32_t depth;   // steps to its deepest leaf
  int32_t target;  // kScalar
  int32_t unused;
};

// Nodes of f32 with few columns.
struct PackedNode {
  float threshold;
  int32_t word;  // delta << bits | column
};
template <typename T>
struct WideNode {
  T threshold;
  uint32_t column;
  int32_t delta;
};

// Where the parts of a forest lie in its bytes, each on a multiple of 64.
struct ForestLayout {
  int64_t places, chunks, nodes, first, targets, weights, bytes;

  ForestLayout(const ForestShape& shape, bool is_double);
};

// A forest in memory.
template <typename T>
struct ForestView {
  ForestShape shape;
  const TreePlace* places;  // [trees]
  const int32_t* chunks;    // [chunks + 1]: the first tree of each
  const std::byte* nodes;
  const int32_t* first;    // [leaves + 1]
  const int32_t* targets;  // [entries]
  const T* weights;

  ForestView(const ForestShape& of, const void* bytes) : shape(of) {
    const ForestLayout layout(of, sizeof(T) == sizeof(double));
    const auto* at = static_cast<const std::byte*>(bytes);
    places = reinterpret_cast<const TreePlace*>(at + layout.places);
    chunks = reinterpret_cast<const int32_t*>(at + layout.chunks);
    nodes = at + layout.nodes;
    first = reinterpret_cast<const int32_t*>(at + layout.first);
    targets = reinterpret_cast<const int32_t*>(at + layout.targets);
    weights = reinterpret_cast<const T*>(at + layout.weights);
  }

  WideNode<T> node(int64_t i) const {
    if (shape.feature_bits == 32) return reinterpret_cast<const WideNode<T>*>(nodes)[i];
    const PackedNode& packed = reinterpret_cast<const PackedNode*>(nodes)[i];
    const auto mask = static_cast<int32_t>((int64_t{1} << shape.feature_bits) - 1);
    return {static_cast<T>(packed.threshold), static_cast<uint32_t>(packed.word & mask),
            packed.word >> shape.feature_bits};
  }
};

// Returns the number of a leaf, as its threshold holds it.
inline uint32_t LeafNumber(float threshold) {
  uint32_t number;
  std::memcpy(&number, &threshold, sizeof(number));
  return number;
}
inline uint64_t LeafNumber(double threshold) {
  uint64_t number;
  std::memcpy(&number, &threshold, sizeof(number));
  return number;
}

// Return the sum of a target before any leaf, and the sum with `weight` of one more leaf.
inline double NoSum() { return std::numeric_limits<double>::quiet_NaN(); }
inline double AddLeaf(LeafSum how, double sum, double weight) {
  if (!(sum == sum)) return weight;
  switch (how) {
    case LeafSum::kSum:
      return sum + weight;
    case LeafSum::kMin:
      return weight < sum ? weight : sum;
    default:
      return weight > sum ? weight : sum;
  }
}

Rule TreeEnsembleRule;
Kernel TreeEnsembleKernel;

}  // namespace reprise::ops

#include "runtime/onnx/classical/forest_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

using ops::ForestLayout;
using ops::ForestShape;
using ops::LeafKind;
using ops::LeafSum;

constexpr int64_t kMostNodes = int64_t{1} << 30;
constexpr int64_t kMostColumns = int64_t{1} << 28;
constexpr int64_t kMostTargets = int64_t{1} << 20;
// Nodes that fit into a core's second-level cache several times over.
constexpr int64_t kNodesOfChunk = 32768;
constexpr int64_t kMostChunks = 64;
constexpr int64_t kMostSums = 256;  // sums of one row, over all chunks, where there are several
// Levels of a tree that lie side by side before its branches go apart.
constexpr int kLevelsTogether = 3;

// Where a question leads: to a node of the file, or to the second half of asking for equality.
struct Target {
  int32_t node = -1;
  bool second_half = false;
};

// x <= threshold ? first : second, of the column or its mirror image; no numbers go to the second.
struct Question {
  double threshold = 0;
  bool mirrored = false;
  Target first, second;
};

template <typename T>
class Builder {
 public:
  explicit Builder(const SourceTrees& trees) : trees_(trees) {}

  absl::StatusOr<BuiltForest> Build() {
    RETURN_IF_ERROR(CheckSizes());
    placed_.assign(trees_.nodes.size(), -1);
    for (size_t tree = 0; tree < trees_.roots.size(); ++tree) {
      RETURN_IF_ERROR(PlaceTree(static_cast<int64_t>(tree)));
    }
    RETURN_IF_ERROR(ReadWeights());
    ShapeNodes();
    ShapeChunks();
    BuiltForest built;
    built.shape = shape_;
    const ForestLayout layout(shape_, sizeof(T) == sizeof(double));
    built.bytes = Tensor::Make(DType::kUInt8, {layout.bytes}, [&](void* data) {
      std::memset(data, 0, static_cast<size_t>(layout.bytes));
      Write(layout, static_cast<std::byte*>(data));
    });
    return built;
  }

 private:
  // A node of the result. Jumps and leaves ask the column of no numbers; leaves jump to themselves.
  struct Placed {
    T threshold = 0;
    int32_t column = kNothing;
    int32_t next = 0;  // its first child; of a jump its target
  };
  static constexpr int32_t kNothing = -1;
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

  absl::Status CheckSizes() {
    if (trees_.targets > kMostTargets) {
      return absl::InvalidArgumentError(
          absl::StrCat("there are ", trees_.targets, " targets, at most ", kMostTargets));
    }
    shape_.targets = trees_.targets;
    shape_.sum = trees_.sum;
    shape_.trees = static_cast<int64_t>(trees_.roots.size());
    for (const SourceTrees::Node& node : trees_.nodes) {
      if (node.question == TreeQuestion::kLeaf) continue;
      if (node.column < 0 || node.column >= kMostColumns) {
        return absl::InvalidArgumentError(absl::StrCat("a node asks for column ", node.column));
      }
      shape_.features = std::max(shape_.features, node.column + 1);
      const bool mirrored = Ask(node, false).mirrored;
      shape_.mirrored = shape_.mirrored || mirrored;
    }
    return absl::OkStatus();
  }

  // Returns the largest number below. Nothing is below minus infinity: no number, which nothing is
  // at most.
  static T Before(T threshold) {
    return threshold == -kInfinity ? kNaN : std::nextafter(threshold, -kInfinity);
  }

  Question Ask(const SourceTrees::Node& node, bool second_half) const {
    const auto threshold = static_cast<T>(node.threshold);
    const Target yes = {node.yes}, no = {node.no};
    const bool missing = node.missing_is_yes;
    if (threshold != threshold) {
      // A comparison with NaN is false; only "not equal" holds.
      if (node.question == TreeQuestion::kOther) return {kNaN, false, yes, yes};
      return missing ? Question{kInfinity, false, no, yes} : Question{kNaN, false, no, no};
    }
    switch (node.question) {
      case TreeQuestion::kAtMost:
        if (missing) return {Before(-threshold), true, no, yes};
        return {threshold, false, yes, no};
      case TreeQuestion::kLess:
        if (missing) return {-threshold, true, no, yes};
        return {Before(threshold), false, yes, no};
      case TreeQuestion::kAtLeast:
        if (missing) return {Before(threshold), false, no, yes};
        return {-threshold, true, yes, no};
      case TreeQuestion::kMore:
        if (missing) return {threshold, false, no, yes};
        return {Before(-threshold), true, yes, no};
      default:
        break;
    }
    // Equal: at most, and not less. No numbers are equal to nothing, and other than everything.
    const bool other = node.question == TreeQuestion::kOther;
    const Target equal = other ? no : yes, differs = other ? yes : no;
    if (second_half) return {Before(threshold), false, differs, equal};
    const Target second = {static_cast<int32_t>(&node - trees_.nodes.data()), true};
    if (missing && !other) return {Before(-threshold), true, differs, second};
    return {threshold, false, second, differs};
  }

  // Lays out one tree: a few levels side by side, then branch by branch.
  absl::Status PlaceTree(int64_t tree) {
    struct Work {
      int32_t at;
      Target target;
      int level;
    };
    const auto root = static_cast<int32_t>(placed_nodes_.size());
    placed_nodes_.emplace_back();
    std::vector<Work> branches, together;
    branches.push_back({root, {trees_.roots[tree]}, 0});
    placed_[trees_.roots[tree]] = root;
    while (!branches.empty()) {
      together.assign(1, branches.back());
      branches.pop_back();
      together[0].level = 0;
      for (size_t i = 0; i < together.size(); ++i) {
        const Work work = together[i];
        if (work.level == kLevelsTogether) {
          branches.push_back(work);
          continue;
        }
        const SourceTrees::Node& node = trees_.nodes[work.target.node];
        if (node.question == TreeQuestion::kLeaf) {
          placed_nodes_[work.at] = {LeafThreshold(node.leaf), kNothing, work.at};
          continue;
        }
        const Question question = Ask(node, work.target.second_half);
        const auto pair = static_cast<int32_t>(placed_nodes_.size());
        if (pair >= kMostNodes) return absl::InvalidArgumentError("there are too many nodes");
        placed_nodes_.resize(placed_nodes_.size() + 2);
        placed_nodes_[work.at] = {
            static_cast<T>(question.threshold),
            static_cast<int32_t>(node.column) | (question.mirrored ? kMirrored : 0), pair};
        // The child that was asked for first is reached more often from other nodes.
        for (const int32_t which : {1, 0}) {
          const Target& child = which == 0 ? question.first : question.second;
          const int32_t at = pair + which;
          const bool leaf = trees_.nodes[child.node].question == TreeQuestion::kLeaf;
          if (!child.second_half && !leaf) {
            if (placed_[child.node] >= 0) {
              placed_nodes_[at] = {T(0), kNothing, placed_[child.node]};
              continue;
            }
            placed_[child.node] = at;
          }
          together.push_back({at, child, work.level + 1});
        }
      }
    }
    ASSIGN_OR_RETURN(const int32_t depth, DepthFrom(root, tree));
    shape_.deepest = std::max<int64_t>(shape_.deepest, depth);
    places_.push_back({root, depth, 0, 0});
    return absl::OkStatus();
  }

  // Steps from `root` to its deepest leaf.
  absl::StatusOr<int32_t> DepthFrom(int32_t root, int64_t tree) {
    constexpr int32_t kUnknown = -1, kOpen = -2;
    depths_.resize(placed_nodes_.size(), kUnknown);
    std::vector<int32_t> path = {root};
    while (!path.empty()) {
      const int32_t at = path.back();
      const Placed& node = placed_nodes_[at];
      if (depths_[at] >= 0) {
        path.pop_back();
        continue;
      }
      if (node.column == kNothing && node.next == at) {
        depths_[at] = 0;
        path.pop_back();
        continue;
      }
      const int32_t last = node.column == kNothing ? node.next : node.next + 1;
      if (depths_[at] == kUnknown) {
        depths_[at] = kOpen;
        for (int32_t child = node.next; child <= last; ++child) {
          if (depths_[child] == kOpen) {
            return absl::InvalidArgumentError(absl::StrCat("tree ", tree, " has a cycle"));
          }
          if (depths_[child] == kUnknown) path.push_back(child);
        }
        continue;
      }
      int32_t deepest = 0;
      for (int32_t child = node.next; child <= last; ++child) {
        if (depths_[child] < 0) {
          return absl::InvalidArgumentError(absl::StrCat("tree ", tree, " has a cycle"));
        }
        deepest = std::max(deepest, depths_[child]);
      }
      depths_[at] = deepest + 1;
      path.pop_back();
    }
    return depths_[root];
  }

  static T LeafThreshold(int32_t number) {
    T threshold;
    if constexpr (sizeof(T) == sizeof(double)) {
      const auto wide = static_cast<uint64_t>(number);
      std::memcpy(&threshold, &wide, sizeof(wide));
    } else {
      std::memcpy(&threshold, &number, sizeof(number));
    }
    return threshold;
  }

  // Sorts the weights by leaf and chooses how leaves hold them.
  absl::Status ReadWeights() {
    first_.assign(trees_.leaves + 1, 0);
    for (const SourceTrees::Weight& weight : trees_.weights) {
      if (weight.target < 0 || weight.target >= shape_.targets) {
        return absl::InvalidArgumentError(
            absl::StrCat("a leaf gives to target ", weight.target, ", there are ", shape_.targets));
      }
      ++first_[weight.leaf + 1];
    }
    for (int32_t leaf = 0; leaf < trees_.leaves; ++leaf) first_[leaf + 1] += first_[leaf];
    sorted_.resize(trees_.weights.size());
    std::vector<int32_t> next(first_.begin(), first_.end());
    for (const SourceTrees::Weight& weight : trees_.weights) {
      sorted_[next[weight.leaf]++] = {weight.target, static_cast<T>(weight.value)};
    }
    if (GiveOneTargetEach()) {
      shape_.kind = LeafKind::kScalar;
      return absl::OkStatus();
    }
    shape_.leaves = trees_.leaves;
    shape_.complete = GiveToAll();
    if (shape_.complete && shape_.sum == LeafSum::kSum) DropZeros();
    const auto entries = static_cast<int64_t>(sorted_.size());
    const bool dense = shape_.complete && shape_.sum == LeafSum::kSum &&
                       entries * 2 >= shape_.leaves * shape_.targets;
    shape_.kind = dense ? LeafKind::kDense : LeafKind::kSparse;
    shape_.entries = dense ? 0 : entries;
    // Sums of added numbers begin with 0.
    shape_.complete = shape_.complete && shape_.sum == LeafSum::kSum;
    return absl::OkStatus();
  }

  // Returns whether every leaf of a tree gives one number, to the same target.
  bool GiveOneTargetEach() {
    if (shape_.sum != LeafSum::kSum) return false;
    std::vector<int32_t> of_leaf(trees_.leaves);
    for (int32_t leaf = 0; leaf < trees_.leaves; ++leaf) {
      if (first_[leaf + 1] - first_[leaf] != 1) return false;
      of_leaf[leaf] = sorted_[first_[leaf]].target;
    }
    // Nodes of one tree lie between its root and the next one.
    for (size_t tree = 0; tree < places_.size(); ++tree) {
      const int32_t end = tree + 1 < places_.size() ? places_[tree + 1].root
                                                    : static_cast<int32_t>(placed_nodes_.size());
      int32_t target = -1;
      for (int32_t at = places_[tree].root; at < end; ++at) {
        const Placed& node = placed_nodes_[at];
        if (node.column != kNothing) continue;
        if (node.next < places_[tree].root || node.next >= end) return false;  // Another tree's.
        if (node.next != at) continue;
        const int32_t own = of_leaf[ops::LeafNumber(node.threshold)];
        if (target >= 0 && own != target) return false;
        target = own;
      }
      places_[tree].target = target;
    }
    ShapeChunks();
    for (int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      std::vector<bool> has(shape_.targets, false);
      for (int32_t tree = chunks_[chunk]; tree < chunks_[chunk + 1]; ++tree) {
        has[places_[tree].target] = true;
      }
      if (std::find(has.begin(), has.end(), false) != has.end()) return false;
    }
    for (Placed& node : placed_nodes_) {
      const bool leaf = node.column == kNothing &&
                        node.next == static_cast<int32_t>(&node - placed_nodes_.data());
      if (leaf) node.threshold = sorted_[first_[ops::LeafNumber(node.threshold)]].value;
    }
    return true;
  }

  bool GiveToAll() const {
    if (static_cast<int64_t>(sorted_.size()) < trees_.leaves * shape_.targets) return false;
    std::vector<int32_t> seen(shape_.targets, -1);
    for (int32_t leaf = 0; leaf < trees_.leaves; ++leaf) {
      int64_t count = 0;
      for (int32_t i = first_[leaf]; i < first_[leaf + 1]; ++i) {
        count += seen[sorted_[i].target] == leaf ? 0 : 1;
        seen[sorted_[i].target] = leaf;
      }
      if (count != shape_.targets) return false;
    }
    return true;
  }

  void DropZeros() {
    int32_t to = 0, from = 0;
    for (int32_t leaf = 0; leaf < trees_.leaves; ++leaf) {
      const int32_t end = first_[leaf + 1];
      for (; from < end; ++from) {
        if (sorted_[from].value != 0) sorted_[to++] = sorted_[from];
      }
      first_[leaf + 1] = to;
    }
    sorted_.resize(to);
  }

  void ShapeNodes() {
    shape_.nodes = static_cast<int64_t>(placed_nodes_.size());
    shape_.feature_bits = 32;
    if (sizeof(T) == sizeof(double)) return;
    int64_t farthest = 1;
    for (size_t at = 0; at < placed_nodes_.size(); ++at) {
      farthest = std::max<int64_t>(farthest, std::abs(Delta(static_cast<int32_t>(at))));
    }
    for (const int64_t bits : {8, 12, 16}) {
      if (shape_.columns() <= (int64_t{1} << bits) && farthest < (int64_t{1} << (31 - bits))) {
        shape_.feature_bits = bits;
        return;
      }
    }
  }

  // Divides the trees into chunks of about the same number of nodes.
  void ShapeChunks() {
    const auto nodes = static_cast<int64_t>(placed_nodes_.size());
    const int64_t most = std::max<int64_t>(
        1, std::min(kMostChunks, kMostSums / std::max<int64_t>(1, shape_.targets)));
    const int64_t wanted = std::clamp<int64_t>(nodes / kNodesOfChunk, 1,
                                               std::min(most, std::max<int64_t>(1, shape_.trees)));
    chunks_.assign(1, 0);
    for (int64_t tree = 1; tree < shape_.trees; ++tree) {
      const auto chunk = static_cast<int64_t>(chunks_.size());
      if (chunk < wanted && places_[tree].root >= nodes * chunk / wanted) {
        chunks_.push_back(static_cast<int32_t>(tree));
      }
    }
    shape_.chunks = static_cast<int64_t>(chunks_.size());
    chunks_.push_back(static_cast<int32_t>(shape_.trees));
  }

  int32_t Delta(int32_t at) const {
    const Placed& node = placed_nodes_[at];
    // No number is never at most anything: one is added.
    return node.next - at - (node.column == kNothing ? 1 : 0);
  }

  int64_t Column(const Placed& node) const {
    if (node.column == kNothing) return shape_.nothing();
    return (node.column & ~kMirrored) + ((node.column & kMirrored) != 0 ? shape_.features : 0);
  }

  template <typename U>
  static void Copy(const std::vector<U>& from, std::byte* to) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size() * sizeof(U));
  }

  void Write(const ForestLayout& layout, std::byte* to) const {
    Copy(places_, to + layout.places);
    Copy(chunks_, to + layout.chunks);
    for (size_t i = 0; i < placed_nodes_.size(); ++i) {
      const Placed& node = placed_nodes_[i];
      const int32_t delta = Delta(static_cast<int32_t>(i));
      const int64_t column = Column(node);
      if (shape_.feature_bits == 32) {
        reinterpret_cast<ops::WideNode<T>*>(to + layout.nodes)[i] = {
            node.threshold, static_cast<uint32_t>(column), delta};
      } else {
        reinterpret_cast<ops::PackedNode*>(to + layout.nodes)[i] = {
            static_cast<float>(node.threshold),
            static_cast<int32_t>(static_cast<uint32_t>(delta) << shape_.feature_bits |
                                 static_cast<uint32_t>(column))};
      }
    }
    if (shape_.kind == LeafKind::kScalar) return;
    T* weights = reinterpret_cast<T*>(to + layout.weights);
    if (shape_.kind == LeafKind::kSparse) {
      Copy(first_, to + layout.first);
      auto* targets = reinterpret_cast<int32_t*>(to + layout.targets);
      for (size_t i = 0; i < sorted_.size(); ++i) {
        targets[i] = sorted_[i].target;
        weights[i] = sorted_[i].value;
      }
      return;
    }
    for (int32_t leaf = 0; leaf < trees_.leaves; ++leaf) {
      for (int32_t i = first_[leaf]; i < first_[leaf + 1]; ++i) {
        weights[leaf * shape_.targets + sorted_[i].target] += sorted_[i].value;
      }
    }
  }

  struct OwnWeight {
    int32_t target;
    T value;
  };
  static constexpr int32_t kMirrored = 1 << 29;

  const SourceTrees& trees_;
  ForestShape shape_;
  std::vector<Placed> placed_nodes_;
  std::vector<int32_t> placed_;  // indexed by node of the file; -1: not yet
  std::vector<int32_t> depths_;
  std::vector<ops::TreePlace> places_;
  std::vector<int32_t> chunks_;
  std::vector<int32_t> first_;
  std::vector<OwnWeight> sorted_;
};

}  // namespace

absl::StatusOr<BuiltForest> BuildForest(const SourceTrees& trees) {
  if (trees.roots.empty()) return absl::InvalidArgumentError("there are no trees");
  return trees.is_double ? Builder<double>(trees).Build() : Builder<float>(trees).Build();
}

}  // namespace reprise

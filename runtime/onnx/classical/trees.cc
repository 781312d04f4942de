#include "runtime/onnx/classical/trees.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/classical/forest_builder.h"
#include "runtime/onnx/classical/ml_attributes.h"
#include "runtime/onnx/kit/steps.h"
#include "runtime/ops/elementwise/select_op.h"

namespace reprise {
namespace {

using Ints = std::vector<int64_t>;
using ops::ScoreRule;
using ops::ScoreRules;

// Returns a list of integers without copying it.
const Ints& IntsOf(const Attributes& attributes, const char* name) {
  static const Ints* const kEmpty = new Ints();
  const auto* list = attributes.Get<Ints>(name);
  return list == nullptr ? *kEmpty : *list;
}

absl::StatusOr<TreeQuestion> QuestionOf(const std::string& mode) {
  constexpr std::pair<absl::string_view, TreeQuestion> kModes[] = {
      {"BRANCH_LEQ", TreeQuestion::kAtMost}, {"LEAF", TreeQuestion::kLeaf},
      {"BRANCH_LT", TreeQuestion::kLess},    {"BRANCH_GTE", TreeQuestion::kAtLeast},
      {"BRANCH_GT", TreeQuestion::kMore},    {"BRANCH_EQ", TreeQuestion::kEqual},
      {"BRANCH_NEQ", TreeQuestion::kOther}};
  for (const auto& [name, question] : kModes) {
    if (name == mode) return question;
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no mode '", mode, "' of nodes"));
}

absl::StatusOr<ops::LeafSum> LeafSumOf(absl::string_view name) {
  if (name == "SUM" || name == "AVERAGE") return ops::LeafSum::kSum;
  if (name == "MIN") return ops::LeafSum::kMin;
  if (name == "MAX") return ops::LeafSum::kMax;
  return absl::InvalidArgumentError(absl::StrCat("there is no aggregate_function '", name, "'"));
}

// The nodes of a forest by tree and number. Converters list a tree's nodes one after another, with
// numbers that count up: a place is then a sum. Otherwise it is looked up.
class NodeNames {
 public:
  static absl::StatusOr<NodeNames> Of(const Ints& trees, const Ints& numbers) {
    NodeNames names;
    for (size_t i = 0; i < trees.size() && names.counted_; ++i) {
      const auto [it, is_new] = names.runs_.try_emplace(trees[i], Run{i, 0, numbers[i]});
      Run& run = it->second;
      names.counted_ =
          run.begin + run.count == i &&
          static_cast<uint64_t>(numbers[i]) - static_cast<uint64_t>(run.first_number) == run.count;
      ++run.count;
    }
    if (names.counted_) return names;
    names.by_name_.reserve(trees.size());
    for (size_t i = 0; i < trees.size(); ++i) {
      if (!names.by_name_.try_emplace({trees[i], numbers[i]}, static_cast<int32_t>(i)).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("tree ", trees[i], " has node ", numbers[i], " twice"));
      }
    }
    return names;
  }

  absl::StatusOr<int32_t> Find(int64_t tree, int64_t number) const {
    if (counted_) {
      const auto it = runs_.find(tree);
      if (it != runs_.end() && number >= it->second.first_number) {
        const auto place =
            static_cast<uint64_t>(number) - static_cast<uint64_t>(it->second.first_number);
        if (place < it->second.count) return static_cast<int32_t>(it->second.begin + place);
      }
    } else if (const auto it = by_name_.find({tree, number}); it != by_name_.end()) {
      return it->second;
    }
    return absl::InvalidArgumentError(absl::StrCat("tree ", tree, " has no node ", number));
  }

 private:
  struct Run {
    size_t begin, count;
    int64_t first_number;
  };
  bool counted_ = true;
  HashMap<int64_t, Run> runs_;  // keyed by tree, where counted_
  HashMap<std::pair<int64_t, int64_t>, int32_t> by_name_;
};

// Attributes that begin with `weights` ("class" or "target") hold the values of the leaves.
absl::StatusOr<SourceTrees> ReadTrees(const Attributes& attributes, const std::string& weights,
                                      int64_t targets) {
  SourceTrees trees;
  trees.targets = targets;
  const Ints& tree_ids = IntsOf(attributes, "nodes_treeids");
  const Ints& node_ids = IntsOf(attributes, "nodes_nodeids");
  const Ints& columns = IntsOf(attributes, "nodes_featureids");
  const Ints& yes = IntsOf(attributes, "nodes_truenodeids");
  const Ints& no = IntsOf(attributes, "nodes_falsenodeids");
  const Ints& missing = IntsOf(attributes, "nodes_missing_value_tracks_true");
  const std::vector<double> values = NumbersOf(attributes, "nodes_values", &trees.is_double);
  const auto* modes = attributes.Get<std::vector<std::string>>("nodes_modes");
  const size_t count = node_ids.size();
  if (modes == nullptr || count == 0) {
    return absl::InvalidArgumentError("there are no nodes: attribute 'nodes_modes' is missing");
  }
  RETURN_IF_ERROR(CheckLength("nodes_treeids", tree_ids.size(), count));
  RETURN_IF_ERROR(CheckLength("nodes_featureids", columns.size(), count));
  RETURN_IF_ERROR(CheckLength("nodes_truenodeids", yes.size(), count));
  RETURN_IF_ERROR(CheckLength("nodes_falsenodeids", no.size(), count));
  RETURN_IF_ERROR(CheckLength("nodes_values", values.size(), count));
  RETURN_IF_ERROR(CheckLength("nodes_modes", modes->size(), count));
  if (!missing.empty()) {
    RETURN_IF_ERROR(CheckLength("nodes_missing_value_tracks_true", missing.size(), count));
  }
  ASSIGN_OR_RETURN(const NodeNames names, NodeNames::Of(tree_ids, node_ids));
  trees.nodes.resize(count);
  std::vector<bool> has_parent(count, false);
  for (size_t i = 0; i < count; ++i) {
    SourceTrees::Node& node = trees.nodes[i];
    ASSIGN_OR_RETURN(node.question, QuestionOf((*modes)[i]));
    if (node.question == TreeQuestion::kLeaf) {
      node.leaf = trees.leaves++;
      continue;
    }
    node.threshold = values[i];
    node.column = columns[i];
    node.missing_is_yes = !missing.empty() && missing[i] != 0;
    ASSIGN_OR_RETURN(node.yes, names.Find(tree_ids[i], yes[i]));
    ASSIGN_OR_RETURN(node.no, names.Find(tree_ids[i], no[i]));
    has_parent[node.yes] = has_parent[node.no] = true;
  }
  std::set<int64_t> rooted;
  for (size_t i = 0; i < count; ++i) {
    if (has_parent[i]) continue;
    // A further node that nothing leads to is no part of its tree.
    if (!rooted.insert(tree_ids[i]).second) continue;
    trees.roots.push_back(static_cast<int32_t>(i));
  }
  // Questions that no root leads to form a cycle.
  std::vector<bool> reached(count, false);
  std::vector<int32_t> open = trees.roots;
  while (!open.empty()) {
    const int32_t at = open.back();
    open.pop_back();
    if (reached[at]) continue;
    reached[at] = true;
    const SourceTrees::Node& node = trees.nodes[at];
    if (node.question != TreeQuestion::kLeaf) open.insert(open.end(), {node.yes, node.no});
  }
  for (size_t i = 0; i < count; ++i) {
    if (reached[i] || trees.nodes[i].question == TreeQuestion::kLeaf) continue;
    return absl::InvalidArgumentError(absl::StrCat("tree ", tree_ids[i], " has a cycle: node ",
                                                   node_ids[i], " cannot be reached"));
  }
  const Ints& weight_trees = IntsOf(attributes, (weights + "_treeids").c_str());
  const Ints& weight_nodes = IntsOf(attributes, (weights + "_nodeids").c_str());
  const Ints& weight_targets = IntsOf(attributes, (weights + "_ids").c_str());
  const std::vector<double> weight_values =
      NumbersOf(attributes, weights + "_weights", &trees.is_double);
  const size_t weight_count = weight_values.size();
  RETURN_IF_ERROR(CheckLength(weights + "_treeids", weight_trees.size(), weight_count));
  RETURN_IF_ERROR(CheckLength(weights + "_nodeids", weight_nodes.size(), weight_count));
  RETURN_IF_ERROR(CheckLength(weights + "_ids", weight_targets.size(), weight_count));
  trees.weights.reserve(weight_count);
  for (size_t i = 0; i < weight_count; ++i) {
    ASSIGN_OR_RETURN(const int32_t node, names.Find(weight_trees[i], weight_nodes[i]));
    // Weights of nodes that are not leaves are never read.
    if (trees.nodes[node].question != TreeQuestion::kLeaf) continue;
    if (weight_targets[i] < 0 || weight_targets[i] >= targets) {
      return absl::InvalidArgumentError(absl::StrCat("a leaf gives to '", weights, "' ",
                                                     weight_targets[i], ", there are ", targets));
    }
    trees.weights.push_back({.leaf = trees.nodes[node].leaf,
                             .target = static_cast<int32_t>(weight_targets[i]),
                             .value = weight_values[i]});
  }
  return trees;
}

// Gives a leaf without a weight 0 where there is one target, to minima and maxima as well;
// of several targets it gives to none (as onnxruntime has it, the specification leaves it open).
void GiveZeros(SourceTrees& trees) {
  if (trees.targets != 1) return;
  std::vector<bool> gives(static_cast<size_t>(trees.leaves), false);
  for (const SourceTrees::Weight& weight : trees.weights) gives[weight.leaf] = true;
  for (int32_t leaf = 0; leaf < trees.leaves; ++leaf) {
    if (!gives[leaf]) trees.weights.push_back({.leaf = leaf, .target = 0, .value = 0});
  }
}

// Returns the sums of `trees` over the rows of the draft's input.
absl::StatusOr<ValueId> AddForest(NodeDraft& draft, SourceTrees& trees, Graph& graph) {
  trees.is_double = trees.is_double || TypeBefore(draft, graph, draft.inputs[0]) == DType::kFloat64;
  ASSIGN_OR_RETURN(BuiltForest forest, BuildForest(trees));
  Steps steps(draft, graph);
  const ValueId x =
      AsFloats(draft, graph, draft.inputs[0], trees.is_double ? DType::kFloat64 : DType::kFloat32);
  const ValueId bytes = steps.Constant("forest", std::move(forest.bytes));
  const NodeId node = graph.AddNode(TreeEnsembleOp::kName, {x, bytes}, forest.shape.ToAttributes(),
                                    1, absl::StrCat(draft.name, "/trees"));
  return graph.node(node).outputs[0];
}

}  // namespace

absl::Status TreeClassifierInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  const Attributes& attributes = draft.attributes;
  ScoreRules rules;
  ASSIGN_OR_RETURN(rules.post, PostTransformOf(attributes));
  rules.labels = ClassLabels(draft, "classlabels_int64s");
  const auto classes = static_cast<int64_t>(rules.labels.size());
  if (classes == 0) {
    return absl::InvalidArgumentError(
        "attribute 'classlabels_int64s' or 'classlabels_strings' is missing");
  }
  ASSIGN_OR_RETURN(SourceTrees trees, ReadTrees(attributes, "class", classes));
  rules.base = NumbersOf(attributes, "base_values");
  if (rules.base.size() > rules.labels.size() || (classes > 2 && !rules.base.empty())) {
    RETURN_IF_ERROR(CheckLength("base_values", rules.base.size(), rules.labels.size()));
  }
  rules.rule = classes == 2 ? ScoreRule::kTwoTrees : ScoreRule::kLargest;
  std::set<int32_t> named;
  rules.positive = true;
  for (const SourceTrees::Weight& weight : trees.weights) {
    if (classes == 2) named.insert(weight.target);
    rules.positive = rules.positive && !(weight.value < 0);
  }
  rules.one_class = named.size() == 1;
  ASSIGN_OR_RETURN(const ValueId sums, AddForest(draft, trees, graph));
  FinishWithScores(draft, sums, rules, /*labels=*/true);
  return absl::OkStatus();
}

absl::Status TreeRegressorInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  const Attributes& attributes = draft.attributes;
  const int64_t targets = attributes.Int("n_targets", 1);
  if (targets < 1) {
    return absl::InvalidArgumentError(absl::StrCat("attribute 'n_targets' is ", targets));
  }
  ScoreRules rules;
  ASSIGN_OR_RETURN(rules.post, PostTransformOf(attributes));
  const std::string aggregate = attributes.String("aggregate_function", "SUM");
  ASSIGN_OR_RETURN(rules.sum, LeafSumOf(aggregate));
  rules.base = NumbersOf(attributes, "base_values");
  if (!rules.base.empty()) {
    RETURN_IF_ERROR(CheckLength("base_values", rules.base.size(), static_cast<size_t>(targets)));
  }
  ASSIGN_OR_RETURN(SourceTrees trees, ReadTrees(attributes, "target", targets));
  GiveZeros(trees);
  trees.sum = rules.sum;
  if (aggregate == "AVERAGE") rules.divisor = static_cast<int64_t>(trees.roots.size());
  ASSIGN_OR_RETURN(const ValueId sums, AddForest(draft, trees, graph));
  FinishWithScores(draft, sums, rules, /*labels=*/false);
  return absl::OkStatus();
}

absl::Status TreeEnsembleInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  const Attributes& attributes = draft.attributes;
  SourceTrees trees;
  ScoreRules rules;
  trees.targets = attributes.Int("n_targets", 1);
  const int64_t aggregate = attributes.Int("aggregate_function", 1);
  const int64_t post = attributes.Int("post_transform", 0);
  if (trees.targets < 1 || aggregate < 0 || aggregate > 3 || post < 0 || post > 4) {
    return absl::InvalidArgumentError(absl::StrCat("n_targets = ", trees.targets,
                                                   ", aggregate_function = ", aggregate,
                                                   ", post_transform = ", post));
  }
  constexpr absl::string_view kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  ASSIGN_OR_RETURN(trees.sum, LeafSumOf(kAggregates[aggregate]));
  rules.sum = trees.sum;
  rules.post = static_cast<ops::PostTransform>(post);
  const Ints& columns = IntsOf(attributes, "nodes_featureids");
  const Ints& yes = IntsOf(attributes, "nodes_truenodeids");
  const Ints& no = IntsOf(attributes, "nodes_falsenodeids");
  const Ints& yes_leafs = IntsOf(attributes, "nodes_trueleafs");
  const Ints& no_leafs = IntsOf(attributes, "nodes_falseleafs");
  const Ints& missing = IntsOf(attributes, "nodes_missing_value_tracks_true");
  const Ints& leaf_targets = IntsOf(attributes, "leaf_targetids");
  const Ints& roots = IntsOf(attributes, "tree_roots");
  const std::vector<double> splits = NumbersOf(attributes, "nodes_splits", &trees.is_double);
  const std::vector<double> modes = NumbersOf(attributes, "nodes_modes");
  const std::vector<double> leaf_weights = NumbersOf(attributes, "leaf_weights", &trees.is_double);
  const std::vector<double> members = NumbersOf(attributes, "membership_values");
  const size_t count = columns.size();
  RETURN_IF_ERROR(CheckLength("nodes_splits", splits.size(), count));
  RETURN_IF_ERROR(CheckLength("nodes_modes", modes.size(), count));
  RETURN_IF_ERROR(CheckLength("nodes_truenodeids", yes.size(), count));
  RETURN_IF_ERROR(CheckLength("nodes_falsenodeids", no.size(), count));
  RETURN_IF_ERROR(CheckLength("nodes_trueleafs", yes_leafs.size(), count));
  RETURN_IF_ERROR(CheckLength("nodes_falseleafs", no_leafs.size(), count));
  RETURN_IF_ERROR(CheckLength("leaf_targetids", leaf_targets.size(), leaf_weights.size()));
  if (!missing.empty()) {
    RETURN_IF_ERROR(CheckLength("nodes_missing_value_tracks_true", missing.size(), count));
  }
  // Nodes first, then leaves, then the nodes that sets of members add.
  const auto inner = static_cast<int64_t>(count);
  trees.leaves = static_cast<int32_t>(leaf_weights.size());
  trees.nodes.resize(count + leaf_weights.size());
  for (int32_t leaf = 0; leaf < trees.leaves; ++leaf) {
    if (leaf_targets[leaf] < 0 || leaf_targets[leaf] >= trees.targets) {
      return absl::InvalidArgumentError(absl::StrCat("a leaf gives to target ", leaf_targets[leaf],
                                                     ", there are ", trees.targets));
    }
    trees.nodes[inner + leaf].leaf = leaf;
    trees.weights.push_back({.leaf = leaf,
                             .target = static_cast<int32_t>(leaf_targets[leaf]),
                             .value = leaf_weights[leaf]});
  }
  const auto child = [&](int64_t id, bool is_leaf) -> absl::StatusOr<int32_t> {
    const int64_t limit = is_leaf ? trees.leaves : inner;
    if (id < 0 || id >= limit) {
      return absl::InvalidArgumentError(
          absl::StrCat("a node leads to ", is_leaf ? "leaf " : "node ", id, ", there are ", limit));
    }
    return static_cast<int32_t>(is_leaf ? inner + id : id);
  };
  size_t member = 0;
  for (size_t i = 0; i < count; ++i) {
    SourceTrees::Node node;
    node.threshold = splits[i];
    node.column = columns[i];
    node.missing_is_yes = !missing.empty() && missing[i] != 0;
    ASSIGN_OR_RETURN(node.yes, child(yes[i], yes_leafs[i] != 0));
    ASSIGN_OR_RETURN(node.no, child(no[i], no_leafs[i] != 0));
    constexpr TreeQuestion kModes[] = {TreeQuestion::kAtMost,  TreeQuestion::kLess,
                                       TreeQuestion::kAtLeast, TreeQuestion::kMore,
                                       TreeQuestion::kEqual,   TreeQuestion::kOther};
    const auto mode = static_cast<int64_t>(modes[i]);
    constexpr int64_t kMember = 6;
    if (mode < 0 || mode > kMember) {
      return absl::InvalidArgumentError(absl::StrCat("there is no mode ", mode, " of nodes"));
    }
    if (mode < kMember) {
      node.question = kModes[mode];
      trees.nodes[i] = node;
      continue;
    }
    // One of several numbers, which end with one that is none: each asked for in turn.
    node.question = TreeQuestion::kEqual;
    int32_t at = static_cast<int32_t>(i);
    const int32_t otherwise = node.no;
    size_t end = member;
    while (end < members.size() && members[end] == members[end]) ++end;
    if (member == end) {
      // Nothing is in an empty set: no number is equal to NaN.
      node.threshold = std::numeric_limits<double>::quiet_NaN();
      trees.nodes[i] = node;
    }
    for (; member < end; ++member) {
      node.threshold = members[member];
      node.no = member + 1 < end ? static_cast<int32_t>(trees.nodes.size()) : otherwise;
      trees.nodes[at] = node;
      at = node.no;
      if (member + 1 < end) trees.nodes.emplace_back();
    }
    member = end + 1;
  }
  for (const int64_t root : roots) {
    ASSIGN_OR_RETURN(const int32_t node, child(root, false));
    trees.roots.push_back(node);
  }
  if (aggregate == 0) rules.divisor = std::max<int64_t>(1, static_cast<int64_t>(roots.size()));
  const DType given = TypeBefore(draft, graph, draft.inputs[0]);
  ASSIGN_OR_RETURN(const ValueId sums, AddForest(draft, trees, graph));
  rules.is_double = trees.is_double;
  if (given == DType::kFloat16) {
    // The result has the dtype of the input.
    const NodeId scores = graph.AddNode(ClassScoresOp::kName, {sums}, rules.ToAttributes());
    return Steps(draft, graph)
        .Become(CastOp::kName, {graph.node(scores).outputs[0]}, {{"to", ops::OnnxNumber(given)}});
  }
  FinishWithScores(draft, sums, rules, /*labels=*/false);
  return absl::OkStatus();
}

}  // namespace reprise

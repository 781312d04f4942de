// Random ensembles of trees: as a file says it, by the reference kernel, and by every tier's.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/onnx/classical/forest_builder.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

using ops::LeafKind;
using ops::LeafSum;

struct TreeOptions {
  int trees = 5, most_depth = 6;
  int64_t columns = 7, targets = 1;
  bool is_double = false, missing = false, equalities = false, shared = false;
  // Percent of targets that a leaf gives a number; 0: each leaf gives one, to its tree's target.
  int density = 0;
  LeafSum sum = LeafSum::kSum;
};

class RandomTrees {
 public:
  RandomTrees(const TreeOptions& options, uint32_t seed) : options_(options), random_(seed) {
    trees_.targets = options.targets;
    trees_.sum = options.sum;
    trees_.is_double = options.is_double;
    for (int tree = 0; tree < options.trees; ++tree) {
      target_ = tree % options.targets;
      first_of_tree_ = static_cast<int32_t>(trees_.nodes.size());
      trees_.roots.push_back(Grow(0));
    }
  }
  const SourceTrees& trees() const { return trees_; }

  // Few values, so that columns often equal thresholds.
  double Number() {
    const int pick = static_cast<int>(random_() % 40);
    if (pick == 0) return std::numeric_limits<double>::infinity();
    if (pick == 1) return -std::numeric_limits<double>::infinity();
    if (pick == 2) return -0.0;
    return (static_cast<int>(random_() % 17) - 8) / 4.0;
  }
  double Input() {
    if (options_.missing && random_() % 5 == 0) return std::numeric_limits<double>::quiet_NaN();
    return Number();
  }

 private:
  int32_t Grow(int depth) {
    const auto at = static_cast<int32_t>(trees_.nodes.size());
    // A subtree of the same tree may have several parents.
    if (options_.shared && depth > 1 && random_() % 6 == 0 && !done_.empty() &&
        done_.back() >= first_of_tree_) {
      return done_.back();
    }
    trees_.nodes.emplace_back();
    if (depth == options_.most_depth || (depth > 0 && random_() % 4 == 0)) {
      AddLeaf(at);
      return at;
    }
    SourceTrees::Node node;
    constexpr TreeQuestion kQuestions[] = {TreeQuestion::kAtMost,  TreeQuestion::kLess,
                                           TreeQuestion::kAtLeast, TreeQuestion::kMore,
                                           TreeQuestion::kEqual,   TreeQuestion::kOther};
    node.question = kQuestions[random_() % (options_.equalities ? 6 : 4)];
    if (!options_.missing && !options_.equalities) node.question = kQuestions[random_() % 2];
    node.threshold = Number();
    node.column = static_cast<int64_t>(random_() % options_.columns);
    node.missing_is_yes = options_.missing && random_() % 2 == 0;
    node.yes = Grow(depth + 1);
    node.no = Grow(depth + 1);
    trees_.nodes[at] = node;
    done_.push_back(at);
    return at;
  }

  void AddLeaf(int32_t at) {
    const int32_t leaf = trees_.leaves++;
    trees_.nodes[at].leaf = leaf;
    std::normal_distribution<float> weight;
    if (options_.density == 0) {
      trees_.weights.push_back({leaf, target_, weight(random_)});
      return;
    }
    for (int32_t target = 0; target < options_.targets; ++target) {
      if (static_cast<int>(random_() % 100) >= options_.density) continue;
      trees_.weights.push_back({leaf, target, random_() % 8 == 0 ? 0.0f : weight(random_)});
    }
  }

  TreeOptions options_;
  std::mt19937 random_;
  SourceTrees trees_;
  int32_t target_ = 0, first_of_tree_ = 0;
  std::vector<int32_t> done_;
};

// Evaluates the question of a file's node about a number, as the specification words it.
bool Says(const SourceTrees::Node& node, double x) {
  if (std::isnan(x) && node.missing_is_yes) return true;
  switch (node.question) {
    case TreeQuestion::kAtMost:
      return x <= node.threshold;
    case TreeQuestion::kLess:
      return x < node.threshold;
    case TreeQuestion::kAtLeast:
      return x >= node.threshold;
    case TreeQuestion::kMore:
      return x > node.threshold;
    case TreeQuestion::kEqual:
      return x == node.threshold;
    default:
      return x != node.threshold;
  }
}

// [targets]; no number where nothing was given.
std::vector<double> Walk(const SourceTrees& trees, const std::vector<double>& row) {
  std::vector<double> sums(trees.targets, ops::NoSum());
  for (int32_t at : trees.roots) {
    while (trees.nodes[at].question != TreeQuestion::kLeaf) {
      const SourceTrees::Node& node = trees.nodes[at];
      at = Says(node, row[node.column]) ? node.yes : node.no;
    }
    for (const SourceTrees::Weight& weight : trees.weights) {
      if (weight.leaf != trees.nodes[at].leaf) continue;
      double& sum = sums[weight.target];
      sum = ops::AddLeaf(trees.sum, sum, weight.value);
    }
  }
  return sums;
}

std::string AttributesText(const Attributes& attributes) {
  std::vector<std::string> items;
  for (const auto& [name, value] : attributes) {
    items.push_back(absl::StrCat(name, " = ", std::get<int64_t>(value)));
  }
  return absl::StrJoin(items, ", ");
}

// Returns the launch of a forest over `rows` rows, with `x` as its operand.
NodeRun RunOf(const BuiltForest& forest, int64_t rows, int64_t columns, const Tensor& x) {
  NodeRun run(absl::StrCat("input %x: ", DTypeName(x.dtype()), "[", rows, ", ", columns,
                           "]\nparam %f: u8[", forest.bytes.num_elements(),
                           "] = p0\n%y: ? = reprise.TreeEnsemble(%x, %f) {",
                           AttributesText(forest.shape.ToAttributes()), "}\noutput %y"));
  run.inputs[0] = x;
  run.inputs[1] = forest.bytes;
  return run;
}

// Returns one of each tier.
const std::vector<std::pair<Isa, std::unique_ptr<CpuDevice>>>& Devices() {
  static const auto* const kDevices = [] {
    auto* devices = new std::vector<std::pair<Isa, std::unique_ptr<CpuDevice>>>();
    for (const Isa isa : cpu::TestedTiers()) {
      devices->emplace_back(isa, std::make_unique<CpuDevice>(CpuDeviceOptions{
                                     .max_isa = isa, .gemm_provider = GemmProvider::kOwn}));
    }
    return devices;
  }();
  return *kDevices;
}

template <typename T>
void Check(const TreeOptions& options, uint32_t seed, const std::string& what) {
  RandomTrees source(options, seed);
  const auto forest = BuildForest(source.trees());
  ASSERT_TRUE(forest.ok()) << forest.status();
  for (const int64_t rows : {1, 3, 7, 8, 9, 17, 64, 131}) {
    const int64_t columns = options.columns + 2;  // The last ones are never asked for.
    std::vector<T> x(rows * columns);
    for (T& value : x) value = static_cast<T>(source.Input());
    const Tensor input = Tensor::FromVector(
        sizeof(T) == sizeof(double) ? DType::kFloat64 : DType::kFloat32, {rows, columns}, x);
    NodeRun run = RunOf(*forest, rows, columns, input);
    const std::vector<Tensor> reference = run.Reference();
    ASSERT_EQ(reference.size(), 1u) << what;
    const auto sums = reference[0].span<double>();
    const ops::ForestShape& shape = forest->shape;
    for (int64_t row = 0; row < rows; ++row) {
      const std::vector<double> numbers(x.begin() + row * columns, x.begin() + (row + 1) * columns);
      const std::vector<double> expected = Walk(source.trees(), numbers);
      for (int64_t target = 0; target < options.targets; ++target) {
        double sum = ops::NoSum();
        for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
          const double part = sums[(row * shape.chunks + chunk) * shape.targets + target];
          if (!std::isnan(part)) sum = ops::AddLeaf(shape.sum, sum, part);
        }
        if (std::isnan(expected[target])) {
          ASSERT_TRUE(std::isnan(sum)) << what << " row " << row;
        } else {
          ASSERT_NEAR(sum, expected[target], 1e-9 * (1 + std::abs(sum))) << what << " row " << row;
        }
      }
    }
    for (const auto& [isa, device] : Devices()) {
      const auto options_of = device->Options(run.graph, run.id);
      ASSERT_EQ(options_of.size(), 1u);
      for (const int parts : {1, 2, 3, 16, 19}) {
        const std::vector<Tensor> result = run.RunOption(*device, options_of[0], parts);
        ASSERT_EQ(std::memcmp(result[0].data(), reference[0].data(), reference[0].bytes()), 0)
            << what << ", " << rows << " rows, " << IsaName(isa) << ", " << parts << " parts";
      }
    }
  }
}

TEST(TreesTest, OneNumberALeaf) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    Check<float>({.trees = 1 + static_cast<int>(seed) * 3}, seed, "scalar");
    Check<double>({.trees = 9, .is_double = true}, seed, "scalar f64");
  }
}

TEST(TreesTest, MissingNumbersAndEqualities) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    Check<float>({.trees = 11, .missing = true}, seed, "missing");
    Check<float>({.trees = 11, .missing = true, .equalities = true}, seed, "equalities");
    Check<double>({.trees = 5, .is_double = true, .missing = true, .equalities = true}, seed,
                  "equalities f64");
  }
}

TEST(TreesTest, SubtreesOfSeveralParents) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    Check<float>({.trees = 6, .most_depth = 9, .missing = true, .equalities = true, .shared = true},
                 seed, "shared");
  }
}

TEST(TreesTest, ManyTargets) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    Check<float>({.trees = 12, .targets = 3}, seed, "a target a tree");
    Check<float>({.trees = 2, .targets = 3}, seed, "targets without trees");
    Check<float>({.trees = 9, .targets = 5, .density = 100}, seed, "dense");
    Check<float>({.trees = 9, .targets = 5, .density = 30}, seed, "sparse");
    Check<double>({.trees = 4, .targets = 3, .is_double = true, .density = 60}, seed, "sparse f64");
  }
}

TEST(TreesTest, LeastAndMost) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    Check<float>({.trees = 7, .targets = 2, .density = 70, .sum = LeafSum::kMin}, seed, "min");
    Check<float>({.trees = 7, .targets = 2, .density = 100, .sum = LeafSum::kMax}, seed, "max");
  }
}

TEST(TreesTest, ColumnsOfEveryWidth) {
  Check<float>({.trees = 5, .columns = 254}, 1, "8 bits");
  Check<float>({.trees = 5, .columns = 300}, 2, "12 bits");
  Check<float>({.trees = 5, .columns = 5000}, 3, "16 bits");
  Check<float>({.trees = 5, .columns = 70000}, 4, "32 bits");
}

TEST(TreesTest, DeepTreesOfSeveralChunks) {
  const TreeOptions options = {.trees = 40, .most_depth = 17, .targets = 2, .density = 80};
  RandomTrees source(options, 5);
  const auto forest = BuildForest(source.trees());
  ASSERT_TRUE(forest.ok());
  std::vector<float> x(19 * 7);
  for (float& value : x) value = static_cast<float>(source.Input());
  NodeRun run = RunOf(*forest, 19, 7, Tensor::FromVector(DType::kFloat32, {19, 7}, x));
  const std::vector<Tensor> reference = run.Reference();
  CpuDevice device;
  const auto found = device.Options(run.graph, run.id);
  for (const int parts : {1, 2, 5}) {
    const std::vector<Tensor> result = run.RunOption(device, found[0], parts);
    EXPECT_EQ(std::memcmp(result[0].data(), reference[0].data(), reference[0].bytes()), 0);
  }
}

TEST(TreesTest, CyclesAreRefused) {
  SourceTrees trees;
  trees.nodes.resize(3);
  trees.nodes[0] = {.yes = 1, .no = 2, .question = TreeQuestion::kAtMost};
  trees.nodes[1] = {.yes = 0, .no = 2, .question = TreeQuestion::kAtMost};
  trees.nodes[2].leaf = 0;
  trees.leaves = 1;
  trees.weights = {{0, 0, 1.0}};
  trees.roots = {0};
  const auto forest = BuildForest(trees);
  EXPECT_EQ(forest.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace reprise

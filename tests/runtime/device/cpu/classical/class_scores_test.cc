// Scores of classic models: the kernels of every tier against the reference.
#include <cmath>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/classical/svm_scores.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

using ops::PostTransform;
using ops::ScoreRule;
using ops::ScoreRules;

// Returns the body of a graph of one node with two results of x [rows, columns].
std::string NodeText(const char* op, int64_t rows, int64_t columns, Attributes attributes) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {{.size = rows}, {.size = columns}});
  const NodeId node = graph.AddNode(op, {x}, std::move(attributes), 2);
  for (const ValueId output : graph.node(node).outputs) graph.AddOutput(output);
  const std::string text = Print(graph);
  const size_t begin = text.find('{') + 1;
  return text.substr(begin, text.rfind('}') - begin);
}

class ScoresTest : public testing::TestWithParam<Isa> {
 protected:
  // Scores within 1e-6 of the reference's, labels its own, whatever the parts.
  void Compare(NodeRun& run) {
    const std::vector<Tensor> expected = run.Reference();
    const CpuDevice device(GetParam());
    const auto options = device.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    for (const int parts : {1, 3}) {
      const std::vector<Tensor> results = run.RunOption(device, options[0], parts);
      for (int64_t i = 0; i < expected[0].num_elements(); ++i) {
        const float want = expected[0].span<float>()[i], got = results[0].span<float>()[i];
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(got)) << i;
        } else {
          EXPECT_NEAR(got, want, 1e-6) << i;
        }
      }
      if (expected.size() > 1) {
        EXPECT_EQ(results[1], expected[1]);
      }
    }
  }

  // Mostly of the size that models have, now and then far beyond the range of a float's
  // exponential.
  static Tensor Numbers(const Shape& shape, std::mt19937& random) {
    std::vector<float> values(NumElements(shape));
    std::normal_distribution<float> usual(0, 4);
    for (float& value : values) {
      value = random() % 16 == 0 ? (random() % 2 == 0 ? 150.0f : -150.0f) : usual(random);
    }
    return Tensor::FromVector(DType::kFloat32, shape, values);
  }
};

TEST_P(ScoresTest, ClassScoresAreThoseOfTheReference) {
  std::mt19937 random(7);
  for (const PostTransform post : {PostTransform::kNone, PostTransform::kSoftmax,
                                   PostTransform::kLogistic, PostTransform::kSoftmaxZero}) {
    for (const int64_t classes : {1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 100}) {
      for (const int64_t rows : {1, 5, 67}) {
        ScoreRules rules = {.rule = classes == 1 ? ScoreRule::kOneLine : ScoreRule::kLargest,
                            .post = post,
                            .base = {}};
        for (int64_t i = 0; i < std::max<int64_t>(classes, 2); ++i) rules.labels.push_back(10 + i);
        SCOPED_TRACE(
            absl::StrCat("post ", static_cast<int>(post), ", classes ", classes, ", rows ", rows));
        NodeRun run(NodeText(ClassScoresOp::kName, rows, classes, rules.ToAttributes()));
        run.inputs[0] = Numbers({rows, classes}, random);
        Compare(run);
      }
    }
  }
}

TEST_P(ScoresTest, SvmScoresAreThoseOfTheReference) {
  std::mt19937 random(8);
  std::uniform_real_distribution<float> number(-2, 2);
  for (const PostTransform post :
       {PostTransform::kNone, PostTransform::kSoftmax, PostTransform::kLogistic}) {
    for (const bool probabilities : {false, true}) {
      for (const int64_t classes : {2, 3, 5, 8, 13}) {
        for (const int64_t rows : {1, 9}) {
          ops::SvmRules rules;
          rules.post = post;
          for (int64_t i = 0; i < classes; ++i) rules.labels.push_back(3 * i);
          for (int64_t i = 0; probabilities && i < rules.pairs(); ++i) {
            rules.prob_a.push_back(-std::abs(number(random)));
            rules.prob_b.push_back(number(random));
          }
          SCOPED_TRACE(absl::StrCat("post ", static_cast<int>(post), ", classes ", classes,
                                    ", rows ", rows, probabilities ? ", probabilities" : ""));
          NodeRun run(NodeText(SvmScoresOp::kName, rows, rules.pairs(), rules.ToAttributes()));
          run.inputs[0] = Tensor::Make(DType::kFloat32, {rows, rules.pairs()}, [&](void* data) {
            for (int64_t i = 0; i < rows * rules.pairs(); ++i) {
              static_cast<float*>(data)[i] = number(random);
            }
          });
          Compare(run);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, ScoresTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu

#include "tests/runtime/passes/testing/pass_test_util.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/graph/verifier.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/testing/interpreter.h"

namespace reprise {
namespace {

void Run(const Pass& pass, Graph& graph) {
  const auto changed = pass.Run(graph);
  ASSERT_TRUE(changed.ok()) << changed.status().ToString();
  ASSERT_TRUE(graph.Compact());
  const absl::Status status = Verify(graph, true);
  ASSERT_TRUE(status.ok()) << status.ToString() << "\n" << Print(graph);
}

double LargestElement(const Tensor& tensor) {
  double largest = 0;
  for (double x : tensor.ToDoubles()) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  return largest;
}

void ExpectSame(const Graph& before, const Graph& after, const SameAnswersOptions& options) {
  std::mt19937 random(7);
  for (int round = 0; round < options.rounds; ++round) {
    const std::vector<Tensor> parameters = RandomParameters(before, 2, random);
    std::map<std::string, Tensor> inputs;
    for (ValueId id : before.inputs()) {
      const Value& value = before.value(id);
      inputs[value.name] = RandomTensor(value.dtype, *value.shape, options.integer_limit, random);
    }
    const auto expected = Interpret(before, inputs, parameters);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString() << "\n" << Print(before);
    const auto actual = Interpret(after, inputs, parameters);
    ASSERT_TRUE(actual.ok()) << actual.status().ToString() << "\n" << Print(after);
    ASSERT_EQ(actual->size(), expected->size());
    for (size_t i = 0; i < expected->size(); ++i) {
      EXPECT_LE(LargestDifference((*actual)[i], (*expected)[i]),
                options.tolerance + options.relative * LargestElement((*expected)[i]))
          << "output " << i << " of\n"
          << Print(after);
    }
  }
}

}  // namespace

Tensor RandomTensor(DType dtype, const Shape& shape, int64_t limit, std::mt19937& random) {
  const int64_t count = NumElements(shape);
  if (dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16) {
    std::vector<float> values(count);
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(random);
    if (dtype == DType::kFloat32) return Tensor::FromVector(dtype, shape, values);
    std::vector<uint16_t> bits;
    for (const float value : values) {
      bits.push_back(dtype == DType::kFloat16 ? FloatToHalf(value) : FloatToBFloat16(value));
    }
    return Tensor::FromVector(dtype, shape, bits);
  }
  if (dtype == DType::kBool || dtype == DType::kInt8 || dtype == DType::kUInt8) {
    const int64_t top = dtype == DType::kBool ? 2 : 100;
    std::vector<uint8_t> values(count);
    for (uint8_t& value : values) value = random() % top;
    return Tensor::FromVector(dtype, shape, values);
  }
  EXPECT_EQ(dtype, DType::kInt64);
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = static_cast<int64_t>(random() % limit);
  return Tensor::FromVector(dtype, shape, values);
}

// Parameters by leaf index; a leaf whose type the text omits is [features] or as the test says.
namespace {

// Adds a value for each leaf of `expr` whose type the text gives.
void AddRandomLeaves(const ParameterExprPtr& expr, int64_t limit, std::mt19937& random,
                     std::vector<Tensor>& parameters) {
  if (expr == nullptr) return;
  for (const ParameterExprPtr& input : expr->inputs()) {
    AddRandomLeaves(input, limit, random, parameters);
  }
  if (!expr->is_leaf() || expr->dtype() == DType::kUndefined) return;
  const size_t index = expr->index();
  if (parameters.size() <= index) parameters.resize(index + 1);
  parameters[index] = RandomTensor(expr->dtype(), expr->shape(), limit, random);
}

}  // namespace

std::vector<Tensor> RandomParameters(const Graph& graph, int64_t limit, std::mt19937& random) {
  std::vector<Tensor> parameters;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != Value::Kind::kParameter) continue;
    AddRandomLeaves(value.parameter, limit, random, parameters);
  }
  return parameters;
}

Graph ParseSpecialized(absl::string_view text) {
  auto graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().ToString() << "\n" << text;
  if (!graph.ok()) return Graph();
  EXPECT_TRUE(graph->Compact());
  for (NodeId id : graph->NodeIds()) {
    const absl::Status status = InferNode(*graph, id);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  return *std::move(graph);
}

std::string RunPass(const Pass& pass, absl::string_view text) {
  Graph graph = ParseSpecialized(text);
  Run(pass, graph);
  return Print(graph, {.names = false});
}

void ExpectUnchanged(const Pass& pass, absl::string_view text) {
  Graph graph = ParseSpecialized(text);
  const std::string before = Print(graph, {.names = false});
  const auto changed = pass.Run(graph);
  ASSERT_TRUE(changed.ok()) << changed.status().ToString();
  EXPECT_FALSE(*changed);
  ASSERT_TRUE(graph.Compact());
  EXPECT_EQ(Print(graph, {.names = false}), before);
}

void ExpectSameAnswers(const Pass& pass, absl::string_view text,
                       const SameAnswersOptions& options) {
  const Graph before = ParseSpecialized(text);
  Graph after = before;
  Run(pass, after);
  ExpectSame(before, after, options);
}

Graph Captured(absl::string_view text) {
  Graph graph = ParseSpecialized(text);
  const absl::Status status = RunCapturePasses(graph);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return graph;
}

void ExpectSameAnswersAfterCapture(absl::string_view text, const SameAnswersOptions& options) {
  ExpectSame(ParseSpecialized(text), Captured(text), options);
}

void ExpectRewrite(const Pass& pass, absl::string_view text, absl::string_view expected,
                   const SameAnswersOptions& options) {
  Graph wanted = ParseSpecialized(expected);
  EXPECT_EQ(RunPass(pass, text), Print(wanted, {.names = false}));
  ExpectSameAnswers(pass, text, options);
}

void ExpectCanonical(absl::string_view text, absl::string_view expected) {
  ExpectRewrite(*Canonicalize(), text, expected);
}

int CountOps(const Graph& graph, absl::string_view op) {
  int count = 0;
  for (NodeId id : graph.NodeIds()) count += graph.node(id).op == op;
  return count;
}

std::string OpsOf(const Graph& graph) {
  std::string ops;
  for (NodeId id : graph.NodeIds()) ops += (ops.empty() ? "" : " ") + graph.node(id).op;
  return ops;
}

std::string OpsAfter(const Pass& pass, absl::string_view text) {
  Graph graph = ParseSpecialized(text);
  Run(pass, graph);
  return OpsOf(graph);
}

}  // namespace reprise

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "runtime/graph/graph.h"
#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

TEST(OpTableTest, RowsAreCompleteAndNamedOnce) {
  std::set<std::string> names;
  for (const OpRow& row : AllOps()) {
    SCOPED_TRACE(std::string(row.name));
    EXPECT_TRUE(names.insert(std::string(row.name)).second);
    EXPECT_NE(row.infer, nullptr);
    EXPECT_NE(row.reference, nullptr);
    EXPECT_GE(row.min_inputs, 0);
    EXPECT_TRUE(row.max_inputs == -1 || row.max_inputs >= row.min_inputs);
    EXPECT_EQ(FindOp(row.name), &row);
    EXPECT_EQ(row.Has(kInternal), row.name.substr(0, 8) == "reprise.");
  }
}

// Every row, asked with operands of every dtype and of ranks 0 to 4, answers with a status.
TEST(OpTableTest, NoShapeRuleFallsOverAnyRankOrDtype) {
  for (const OpRow& row : AllOps()) {
    for (int count = row.min_inputs; count <= row.min_inputs + 2; ++count) {
      if (row.max_inputs >= 0 && count > row.max_inputs) break;
      for (int rank = 0; rank <= 4; ++rank) {
        for (int64_t size : {0, 1, 2, 3}) {
          for (int dtype = 1; dtype <= static_cast<int>(DType::kBool); ++dtype) {
            const Shape shape(rank, size);
            Tensor tensor = Tensor::Make(static_cast<DType>(dtype), shape, [&](void* data) {
              if (size == 0 && rank > 0) return;
              std::memset(data, 1, NumElements(shape) * DTypeSize(static_cast<DType>(dtype)));
            });
            const auto result = RunOp(row.name, OptionalTensors(count, tensor), {},
                                      std::max(1, row.min_outputs), 1 << 16);
            if (!result.ok()) {
              EXPECT_NE(result.status().code(), absl::StatusCode::kInternal) << result.status();
            }
          }
        }
      }
    }
  }
}

// Operands of mixed dtypes, ranks and left-out places, random attributes.
TEST(OpTableTest, RandomOperandsAreAnsweredWithAStatus) {
  uint32_t state = 12345;
  const auto random = [&](uint32_t limit) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % limit;
  };
  const char* const names[] = {
      "axis",         "num_heads", "block_size", "keepdims", "K",     "N",
      "batch_dims",   "k",         "packed_qkv", "to",       "dtype", "q_num_heads",
      "kv_num_heads", "is_causal", "upper"};
  constexpr int64_t kExtremes[] = {std::numeric_limits<int64_t>::min(),
                                   std::numeric_limits<int64_t>::max()};
  int answered = 0;
  for (const OpRow& row : AllOps()) {
    for (int round = 0; round < 300; ++round) {
      OptionalTensors inputs;
      const int most = row.max_inputs < 0 ? row.min_inputs + 3 : row.max_inputs;
      const int count = row.min_inputs + static_cast<int>(random(most - row.min_inputs + 1));
      for (int i = 0; i < count; ++i) {
        if (random(8) == 0) {
          inputs.emplace_back();
          continue;
        }
        constexpr DType kDTypes[] = {DType::kFloat32, DType::kInt64, DType::kUInt8,
                                     DType::kInt32,   DType::kBool,  DType::kFloat32};
        const DType dtype = kDTypes[random(6)];
        Shape shape;
        for (uint32_t d = random(4); d > 0; --d) shape.push_back(random(4));
        std::vector<double> values(NumElements(shape));
        for (double& value : values) value = static_cast<double>(random(5)) - 1;
        inputs.push_back(Tensor::Make(dtype, shape, [&](void* data) {
          for (size_t v = 0; v < values.size(); ++v) {
            if (dtype == DType::kFloat32) static_cast<float*>(data)[v] = values[v];
            if (dtype == DType::kInt64) static_cast<int64_t*>(data)[v] = values[v];
            if (dtype == DType::kInt32) static_cast<int32_t*>(data)[v] = values[v];
            if (DTypeSize(dtype) == 1) static_cast<uint8_t*>(data)[v] = values[v] > 0;
          }
        }));
      }
      Attributes attributes;
      for (const char* name : names) {
        if (random(3) == 0) attributes.Set(name, static_cast<int64_t>(random(7)) - 2);
        if (random(50) == 0) attributes.Set(name, kExtremes[random(2)]);
      }
      if (RunOp(row.name, inputs, attributes, std::max(1, row.min_outputs), 1 << 16).ok()) {
        ++answered;
      }
    }
  }
  EXPECT_GT(answered, 1000);  // The operands were not all nonsense.
}

TEST(OpTableTest, ErrorsNameNodeAndOperands) {
  Node node;
  node.op = "MatMul";
  node.name = "/encoder/product";
  node.inputs = {0, 1};
  node.outputs = {2};
  const OptionalTensors inputs = {F32({2, 3}, {1, 2, 3, 4, 5, 6}), F32({2}, {1, 2})};
  const auto result = Evaluate(node, inputs, 1 << 20);
  EXPECT_THAT(result.status().message(),
              HasSubstr("MatMul '/encoder/product'(f32[2, 3], f32[2]): inner sizes 3 and 2"));
}

TEST(OpTableTest, WrongArityIsNamed) {
  EXPECT_THAT(RunOp("Relu", {}).status().message(), HasSubstr("has 0 inputs, takes 1 to 1"));
  EXPECT_THAT(RunOp("Reshape", {F32({1}, {1}), std::nullopt}).status().message(),
              HasSubstr("input 1 must not be left out"));
}

TEST(InferNodeTest, UnknownShapeArgumentsAreAPrecondition) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {{.size = 6}});
  const ValueId shape = graph.AddInput("shape", DType::kInt64, {{.size = 2}});
  const NodeId reshape = graph.AddNode("Reshape", {x, shape});
  const absl::Status status = InferNode(graph, reshape);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("depends on data"));
}

TEST(InferNodeTest, SetsDtypesAndShapesOfTheResultsThatAreWanted) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {{.size = 2}, {.size = 4}});
  const NodeId split =
      graph.AddNodeWithOutputs("Split", {x}, {{"axis", int64_t{1}}}, {"", "b"}, "");
  ASSERT_TRUE(InferNode(graph, split).ok());
  EXPECT_EQ(*graph.value(graph.FindValue("b")).shape, (Shape{2, 2}));
  EXPECT_EQ(graph.value(graph.FindValue("b")).dtype, DType::kFloat32);
}

}  // namespace
}  // namespace reprise

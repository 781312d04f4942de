// Attention and rotary positions that a model names as one op: no launch of theirs runs by a
// reference kernel. Their results are compared with onnxruntime in tests/conformance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using onnx::TensorProto;
using ::testing::IsEmpty;

class NamedAttentionTest : public testing::Test {
 protected:
  static constexpr int64_t kHeads = 4, kKvHeads = 2, kSize = 8;

  NamedAttentionTest() {
    auto* domain = b_.model().add_opset_import();
    domain->set_domain(kMicrosoft);
    domain->set_version(1);
  }

  onnx::NodeProto& Microsoft(const std::string& op, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs) {
    return b_.Node(op, inputs, outputs, op, kMicrosoft);
  }
  void Tables(int64_t rows, int64_t half) {
    std::vector<float> cosine, sine;
    for (int64_t i = 0; i < rows * half; ++i) {
      cosine.push_back(std::cos(0.1f * static_cast<float>(i)));
      sine.push_back(std::sin(0.1f * static_cast<float>(i)));
    }
    b_.Floats("cosine", {rows, half}, cosine);
    b_.Floats("sine", {rows, half}, sine);
  }
  // Returns the kernels of the recipe at `sizes`, by axis, that are reference kernels.
  std::vector<std::string> SlowKernels(const std::vector<int64_t>& sizes) {
    const auto model =
        fixture_.engine.Load({.id = {"m", 1}, .path = folder_.Write("m.onnx", b_.Bytes())});
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return {"none"};
    const auto recipe = fixture_.engine.CompileAt(**model, sizes);
    EXPECT_TRUE(recipe.ok()) << recipe.status();
    if (!recipe.ok()) return {"none"};
    std::vector<std::string> slow;
    for (const Launch& launch : (*recipe)->launches) {
      const bool own = launch.kernel == "reference/ReduceSum";  // the model's, over few integers
      if (launch.kernel.rfind("reference/", 0) == 0 && !own) slow.push_back(launch.kernel);
    }
    return slow;
  }

  ModelBuilder b_{23};
  const TempFolder folder_;
  EngineFixture fixture_;
};

TEST_F(NamedAttentionTest, MultiHeadAttentionWithBiasMaskAndPast) {
  const std::string width = std::to_string(kHeads * kSize);
  for (const char* name : {"q", "k", "v"}) b_.Input(name, {"batch", "rows", width});
  for (const char* name : {"past_k", "past_v"}) {
    b_.Input(name, {"batch", std::to_string(kHeads), "past", std::to_string(kSize)});
  }
  b_.Input("mask", {"batch", "all"}, TensorProto::INT32);
  b_.Floats("bias", {3 * kHeads * kSize}, std::vector<float>(3 * kHeads * kSize, 0.5f));
  auto& node =
      Microsoft("MultiHeadAttention", {"q", "k", "v", "bias", "mask", "", "past_k", "past_v"},
                {"y", "new_k", "new_v"});
  SetAttribute(node, "num_heads", kHeads);
  SetAttribute(node, "unidirectional", int64_t{1});
  for (const char* name : {"y", "new_k", "new_v"}) b_.Output(name);
  EXPECT_THAT(SlowKernels({2, 3, 5, 8}), IsEmpty());
}

TEST_F(NamedAttentionTest, AttentionWithPast) {
  b_.Input("q", {"batch", std::to_string(kHeads), "rows", std::to_string(kSize)});
  for (const char* name : {"k", "v"}) {
    b_.Input(name, {"batch", std::to_string(kKvHeads), "rows", std::to_string(kSize)});
  }
  for (const char* name : {"past_k", "past_v"}) {
    b_.Input(name, {"batch", std::to_string(kKvHeads), "past", std::to_string(kSize)});
  }
  auto& node =
      b_.Node("Attention", {"q", "k", "v", "", "past_k", "past_v"}, {"y", "new_k", "new_v"});
  SetAttribute(node, "is_causal", int64_t{1});
  for (const char* name : {"y", "new_k", "new_v"}) b_.Output(name);
  EXPECT_THAT(SlowKernels({2, 3, 5}), IsEmpty());
}

TEST_F(NamedAttentionTest, GroupQueryAttentionWhoseLengthIsThatOfTheMask) {
  b_.Input("qkv", {"batch", "rows", std::to_string((kHeads + 2 * kKvHeads) * kSize)});
  for (const char* name : {"past_k", "past_v"}) {
    b_.Input(name, {"batch", std::to_string(kKvHeads), "past", std::to_string(kSize)});
  }
  b_.Input("mask", {"batch", "all"}, TensorProto::INT64);
  b_.Initializer("one", TensorProto::INT64, {1}, std::vector<int64_t>{1});
  b_.Initializer("second", TensorProto::INT64, {}, std::vector<int64_t>{1});
  SetAttribute(b_.Node("ReduceSum", {"mask", "one"}, {"counts"}), "keepdims", int64_t{0});
  b_.Node("Sub", {"counts", "one"}, {"last"});
  SetAttribute(b_.Node("Cast", {"last"}, {"last32"}), "to", int64_t{TensorProto::INT32});
  b_.Node("Shape", {"mask"}, {"shape"});
  b_.Node("Gather", {"shape", "second"}, {"length"});
  SetAttribute(b_.Node("Cast", {"length"}, {"length32"}), "to", int64_t{TensorProto::INT32});
  Tables(40, kSize / 2);
  auto& node =
      Microsoft("GroupQueryAttention",
                {"qkv", "", "", "past_k", "past_v", "last32", "length32", "cosine", "sine"},
                {"y", "new_k", "new_v"});
  SetAttribute(node, "num_heads", kHeads);
  SetAttribute(node, "kv_num_heads", kKvHeads);
  SetAttribute(node, "do_rotary", int64_t{1});
  SetAttribute(node, "local_window_size", int64_t{4});
  for (const char* name : {"y", "new_k", "new_v"}) b_.Output(name);
  EXPECT_THAT(SlowKernels({2, 1, 5, 6}), IsEmpty());
}

TEST_F(NamedAttentionTest, RotaryEmbeddingOfEitherKind) {
  b_.Input("by_token", {"batch", "rows", std::to_string(kHeads * kSize)});
  b_.Input("by_head", {"batch", std::to_string(kHeads), "rows", std::to_string(kSize + 6)});
  b_.Input("at", {"batch", "rows"}, TensorProto::INT64);
  Tables(40, kSize / 2);
  Microsoft("RotaryEmbedding", {"by_token", "at", "cosine", "sine"}, {"y0"});
  auto& neighbours = Microsoft("RotaryEmbedding", {"by_token", "at", "cosine", "sine"}, {"y1"});
  SetAttribute(neighbours, "interleaved", int64_t{1});
  auto& part = b_.Node("RotaryEmbedding", {"by_head", "cosine", "sine", "at"}, {"y2"});
  SetAttribute(part, "rotary_embedding_dim", kSize);
  for (const char* name : {"y0", "y1", "y2"}) b_.Output(name);
  EXPECT_THAT(SlowKernels({2, 3}), IsEmpty());
}

TEST_F(NamedAttentionTest, APositionBelowZeroIsAnErrorOfItsRequest) {
  b_.Input("x", {"batch", "rows", std::to_string(kHeads * kSize)});
  b_.Input("at", {"batch", "rows"}, TensorProto::INT64);
  Tables(40, kSize / 2);
  Microsoft("RotaryEmbedding", {"x", "at", "cosine", "sine"}, {"y"});
  b_.Output("y");
  const auto model =
      fixture_.engine.Load({.id = {"m", 1}, .path = folder_.Write("m.onnx", b_.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<float> x(2 * kHeads * kSize, 1.0f);
  std::vector<int64_t> at = {39, -1};
  Request request;
  request.inputs = {{{1, 2, kHeads * kSize}, x.data()}, {{1, 2}, at.data()}};
  EXPECT_EQ(fixture_.engine.RunOne(**model, request, *fixture_.stream).status.code(),
            absl::StatusCode::kInvalidArgument);
  at[1] = 0;
  const Response response = fixture_.engine.RunOne(**model, request, *fixture_.stream);
  EXPECT_TRUE(response.status.ok()) << response.status;
}

// How long the cache is to be may be an input of its own: its value decides a shape.
TEST_F(NamedAttentionTest, GroupQueryAttentionWhoseLengthIsAnInput) {
  const std::string size = std::to_string(kSize), width = std::to_string(kKvHeads * kSize);
  b_.Input("q", {"batch", "rows", std::to_string(kHeads * kSize)});
  for (const char* name : {"k", "v"}) b_.Input(name, {"batch", "rows", width});
  for (const char* name : {"past_k", "past_v"}) {
    b_.Input(name, {"batch", std::to_string(kKvHeads), "past", size});
  }
  b_.Input("last", {"batch"}, TensorProto::INT32);
  b_.Input("length", {}, TensorProto::INT32);
  auto& node =
      Microsoft("GroupQueryAttention", {"q", "k", "v", "past_k", "past_v", "last", "length"},
                {"y", "new_k", "new_v"});
  SetAttribute(node, "num_heads", kHeads);
  SetAttribute(node, "kv_num_heads", kKvHeads);
  for (const char* name : {"y", "new_k", "new_v"}) b_.Output(name);
  const auto model =
      fixture_.engine.Load({.id = {"m", 1}, .path = folder_.Write("m.onnx", b_.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  constexpr int64_t kBatch = 3, kPast = 5;  // no bucket: one row of it is padding
  const std::vector<float> q(kBatch * kHeads * kSize, 0.5f), kv(kBatch * kKvHeads * kSize, 0.25f);
  const std::vector<float> past(kBatch * kKvHeads * kPast * kSize, 0.125f);
  std::vector<int32_t> last = {5, 2, 0};
  const int32_t length = 6;
  Request request;
  request.inputs = {{{kBatch, 1, kHeads * kSize}, q.data()},
                    {{kBatch, 1, kKvHeads * kSize}, kv.data()},
                    {{kBatch, 1, kKvHeads * kSize}, kv.data()},
                    {{kBatch, kKvHeads, kPast, kSize}, past.data()},
                    {{kBatch, kKvHeads, kPast, kSize}, past.data()},
                    {{kBatch}, last.data()},
                    {{}, &length}};
  const Response response = fixture_.engine.RunOne(**model, request, *fixture_.stream);
  ASSERT_TRUE(response.status.ok()) << response.status;
  EXPECT_EQ(response.outputs[1].shape, (Shape{kBatch, kKvHeads, 6, kSize}));
  // Row 1 has two rows of the past, then the new one, then nothing.
  const auto* keys = reinterpret_cast<const float*>(response.outputs[1].bytes.data());
  const auto row = [&](int64_t b, int64_t i) { return keys[(b * kKvHeads * 6 + i) * kSize]; };
  EXPECT_EQ(row(1, 1), 0.125f);
  EXPECT_EQ(row(1, 2), 0.25f);
  EXPECT_EQ(row(1, 3), 0.0f);
  EXPECT_EQ(row(2, 0), 0.25f);
  last[0] = 9;  // more than the cache has room for
  EXPECT_EQ(fixture_.engine.RunOne(**model, request, *fixture_.stream).status.code(),
            absl::StatusCode::kInvalidArgument);
}

// Nodes whose operands have sizes in the file are rewritten while the model is loaded: operands
// that do not fit are an error that names the node.
TEST_F(NamedAttentionTest, StaticOperandsThatDoNotFitAreRefusedByName) {
  struct Case {
    const char* op;
    std::vector<std::string> k, v;
    int64_t heads;
  };
  for (const Case& one : {Case{"MultiHeadAttention", {"1", "4", "12"}, {"1", "4", "12"}, 0},
                          Case{"MultiHeadAttention", {"12"}, {"1", "4", "12"}, 3},
                          Case{"MultiHeadAttention", {"1", "4", "12"}, {"2", "4", "12"}, 3},
                          Case{"Attention", {"4", "12"}, {"1", "4", "12"}, 3},
                          Case{"Attention", {"1", "0", "4", "4"}, {"1", "0", "4", "4"}, 3},
                          Case{"RotaryEmbedding", {"1", "4"}, {}, 0}}) {
    ModelBuilder b(23);
    auto* domain = b.model().add_opset_import();
    domain->set_domain(kMicrosoft);
    domain->set_version(1);
    const bool rotary = one.v.empty(), four = one.k.size() == 4;
    b.Input("q", four ? std::vector<std::string>{"1", "3", "4", "4"}
                      : std::vector<std::string>{"1", "4", "12"});
    b.Input("k", one.k, rotary ? TensorProto::INT64 : TensorProto::FLOAT);
    if (!rotary) b.Input("v", one.v);
    if (rotary) b.Floats("table", {}, {1.0f});
    const bool microsoft = std::string(one.op) != "Attention";
    auto& node = b.Node(one.op,
                        rotary ? std::vector<std::string>{"q", "k", "table", "table"}
                               : std::vector<std::string>{"q", "k", "v"},
                        {"y"}, "culprit", microsoft ? kMicrosoft : "");
    if (!rotary) SetAttribute(node, microsoft ? "num_heads" : "q_num_heads", one.heads);
    if (!microsoft) SetAttribute(node, "kv_num_heads", one.heads);
    b.Output("y");
    const auto model =
        fixture_.engine.Load({.id = {"m", 1}, .path = folder_.Write("m.onnx", b.Bytes())});
    EXPECT_FALSE(model.ok()) << one.op;
    EXPECT_THAT(std::string(model.status().message()), testing::HasSubstr("culprit")) << one.op;
  }
}

TEST_F(NamedAttentionTest, GroupQueryAttentionWithASink) {
  const std::string width = std::to_string(kHeads * kSize);
  for (const char* name : {"q", "k", "v"}) b_.Input(name, {"batch", "rows", width});
  b_.Input("last", {"batch"}, TensorProto::INT32);
  b_.Initializer("length", TensorProto::INT32, {}, std::vector<int32_t>{3});
  b_.Floats("sink", {kHeads}, std::vector<float>(kHeads, 0.5f));
  auto& node = Microsoft("GroupQueryAttention",
                         {"q", "k", "v", "", "", "last", "length", "", "", "", "", "sink"},
                         {"y", "new_k", "new_v"});
  SetAttribute(node, "num_heads", kHeads);
  SetAttribute(node, "kv_num_heads", kHeads);
  b_.Output("y");
  EXPECT_THAT(SlowKernels({2, 3}), IsEmpty());
}

TEST_F(NamedAttentionTest, MultiHeadAttentionWhoseOperandsAreOne) {
  b_.Input("qkv", {"batch", "rows", std::to_string(kHeads), "3", std::to_string(kSize)});
  auto& node = Microsoft("MultiHeadAttention", {"qkv"}, {"y"});
  SetAttribute(node, "num_heads", kHeads);
  b_.Output("y");
  EXPECT_THAT(SlowKernels({2, 3}), IsEmpty());
}

// A form without a decomposition is refused with the name of the obstacle.
TEST_F(NamedAttentionTest, GroupQueryAttentionWithAScaleOfItsCacheIsRefused) {
  const std::string width = std::to_string(kHeads * kSize);
  for (const char* name : {"q", "k", "v"}) b_.Input(name, {"batch", "rows", width});
  b_.Initializer("last", TensorProto::INT32, {1}, std::vector<int32_t>{2});
  b_.Initializer("length", TensorProto::INT32, {}, std::vector<int32_t>{3});
  b_.Floats("scale", {1}, {0.5f});
  auto& node = Microsoft("GroupQueryAttention",
                         {"q", "k", "v", "", "", "last", "length", "", "", "", "", "", "scale"},
                         {"y", "new_k", "new_v"});
  SetAttribute(node, "num_heads", kHeads);
  SetAttribute(node, "kv_num_heads", kHeads);
  b_.Output("y");
  const auto model =
      fixture_.engine.Load({.id = {"m", 1}, .path = folder_.Write("m.onnx", b_.Bytes())});
  EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(model.status().message()), testing::HasSubstr("input 12"));
}

}  // namespace
}  // namespace reprise

// Requests and values that have sizes and no elements: they cost their sender no bytes, and may
// cost the server no more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tests/runtime/engine/tail/tail_fixture.h"

namespace reprise {
namespace {

using testing::HasSubstr;

constexpr int64_t kHuge = int64_t{1} << 45, kMany = int64_t{1} << 26;
constexpr double kMostSeconds = 0.1;  // where rows one by one would take hours

class EmptyRequestsTest : public TailTest {
 protected:
  // Runs it, and checks that it does not take long.
  Response Quickly(std::vector<InputTensor> inputs) {
    const auto start = std::chrono::steady_clock::now();
    Response response = Run(std::move(inputs));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took.count(), kMostSeconds) << response.status;
    return response;
  }
  void ExpectTooMany(const std::vector<Shape>& shapes, const std::string& input) {
    std::vector<InputTensor> inputs;
    for (const Shape& shape : shapes) inputs.push_back({shape, data_.data()});
    const Response response = Quickly(std::move(inputs));
    EXPECT_TRUE(absl::IsInvalidArgument(response.status)) << response.status;
    EXPECT_THAT(std::string(response.status.message()), HasSubstr(input));
  }

  const std::vector<float> data_ = std::vector<float>(64, 1);
};

TEST_F(EmptyRequestsTest, RowsOfNothingAreRefusedByTheirNumber) {
  ModelBuilder b;
  b.Input("x", {"batch", "0"}).Output("y");
  b.Node("Relu", {"x"}, {"y"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  for (const int64_t rows : {kHuge, kMany, INT64_MAX}) ExpectTooMany({{rows, 0}}, "'x'");
  const Response some = Quickly({{{3, 0}, data_.data()}});
  ASSERT_TRUE(some.status.ok()) << some.status;
  EXPECT_EQ(some.outputs[0].shape, (Shape{3, 0}));
  const Response more = Quickly({{{4096, 0}, data_.data()}});
  ASSERT_TRUE(more.status.ok()) << more.status;
  EXPECT_EQ(more.outputs[0].shape, (Shape{4096, 0}));
}

TEST_F(EmptyRequestsTest, SoAreTheyWhereAnotherSizeIsZero) {
  ModelBuilder b;
  b.Input("x", {"batch", "seq", "width"}).Input("z", {"batch", "other"});
  b.Output("y").Output("w");
  b.Node("Softmax", {"x"}, {"y"});
  b.Node("Abs", {"z"}, {"w"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  ExpectTooMany({{kHuge, 1, 0}, {kHuge, 0}}, "'x'");
  ExpectTooMany({{1, kHuge, 0}, {1, 1}}, "'x'");
  ExpectTooMany({{1, 0, kMany}, {1, 1}}, "'x'");
  ExpectTooMany({{2, kHuge, 0}, {2, 2}}, "'x'");
  // More than 2^63 come of them.
  ExpectTooMany({{kHuge, kHuge, 0}, {kHuge, 0}}, "");
  ExpectTooMany({{0, kHuge, kHuge}, {0, 1}}, "");
  const Response some = Quickly({{{2, 5, 0}, data_.data()}, {{2, 3}, data_.data()}});
  ASSERT_TRUE(some.status.ok()) << some.status;
  EXPECT_EQ(some.outputs[0].shape, (Shape{2, 5, 0}));
  EXPECT_EQ(some.outputs[1].shape, (Shape{2, 3}));
}

TEST_F(EmptyRequestsTest, ARowForAllIsNotRepeatedForRowsOfNothing) {
  ModelBuilder b;
  b.Input("x", {"batch", "0"}).Input("row", {"batch", "1"}).Output("y").Output("z");
  b.Node("Relu", {"x"}, {"y"});
  b.Node("Neg", {"row"}, {"z"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  for (const int64_t rows : {kHuge, kMany}) {
    const Response response = Quickly({{{rows, 0}, data_.data()}, {{1, 1}, data_.data()}});
    EXPECT_FALSE(response.status.ok());
  }
}

// Values whose sizes data gives are not computed where the result is empty, however long the walk.
TEST_F(EmptyRequestsTest, ValuesOfNothingThatDataAskForAreBounded) {
  ModelBuilder b;
  b.Input("sizes", {"3"}, onnx::TensorProto::INT64).Output("y").Output("state");
  b.Floats("w", {1, 2, 3}, std::vector<float>(6, 1));
  b.Floats("r", {1, 2, 2}, std::vector<float>(4, 1));
  b.Node("ConstantOfShape", {"sizes"}, {"x"}, "zeros");
  b.Node("RNN", {"x", "w", "r"}, {"y", "state"}, "rnn");
  SetAttribute(*b.graph().mutable_node(1), "hidden_size", int64_t{2});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  const auto run = [&](std::vector<int64_t> sizes) { return Quickly({{{3}, sizes.data()}}); };
  const Response some = run({5, 0, 3});
  ASSERT_TRUE(some.status.ok()) << some.status;
  EXPECT_EQ(some.outputs[0].shape, (Shape{5, 1, 0, 2}));
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{kHuge, 0, 3}, {kHuge, kHuge, 0}, {INT64_MAX, 0, 3}}) {
    const Response response = run(sizes);
    EXPECT_FALSE(response.status.ok());
    EXPECT_NE(response.status.code(), absl::StatusCode::kInternal) << response.status;
  }
  // Up to there it takes no time: no step is computed.
  const Response many = run({kMany, 0, 3});
  ASSERT_TRUE(many.status.ok()) << many.status;
  EXPECT_EQ(many.outputs[0].shape, (Shape{kMany, 1, 0, 2}));
}

TEST_F(EmptyRequestsTest, ANodeWithoutElementsIsNoLaunch) {
  ModelBuilder b;
  b.Input("x", {"batch", "width"}).Output("y");
  b.Node("Relu", {"x"}, {"y"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  const auto compiled = fixture_.engine.CompileAt(*model_, {7, 0});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_TRUE((*compiled)->launches.empty());
}

}  // namespace
}  // namespace reprise

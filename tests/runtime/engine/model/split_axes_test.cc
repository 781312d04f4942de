#include "runtime/engine/model/split_axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// Models of which every request is run as onnxruntime runs it, whatever the names of dims say.
class SplitAxesTest : public testing::Test {
 protected:
  void Load(const ModelBuilder& b) {
    const auto model =
        fixture_.engine.Load({.id = {"m", 1}, .path = folder_.Write("m.onnx", b.Bytes())});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }
  // Input i has elements i + 1, i + 1.25, i + 1.5, ... of that many positions.
  Response Run(const std::vector<Shape>& shapes) {
    std::vector<std::vector<float>> values;
    Request request;
    for (size_t i = 0; i < shapes.size(); ++i) values.push_back(ValuesOf(i, shapes[i]));
    for (size_t i = 0; i < shapes.size(); ++i) {
      request.inputs.push_back({shapes[i], values[i].data()});
    }
    return fixture_.engine.RunOne(*model_, request, *fixture_.stream);
  }
  static std::vector<float> ValuesOf(size_t input, const Shape& shape) {
    std::vector<float> values(static_cast<size_t>(NumElements(shape)));
    for (size_t e = 0; e < values.size(); ++e) {
      values[e] = static_cast<float>(input + 1) + 0.25F * static_cast<float>(e);
    }
    return values;
  }
  static std::vector<float> Floats(const Response& response) {
    const std::string& bytes = response.outputs[0].bytes;
    const auto* data = reinterpret_cast<const float*>(bytes.data());
    return {data, data + bytes.size() / sizeof(float)};
  }
  // Returns the numpy sum of the two inputs that Run sends.
  static std::vector<float> SumOf(const Shape& x, const Shape& y, const Shape& sum) {
    const std::vector<float> xs = ValuesOf(0, x), ys = ValuesOf(1, y);
    std::vector<float> result;
    for (int64_t e = 0; e < NumElements(sum); ++e) {
      const auto at = [&](const Shape& shape, const std::vector<float>& values) {
        int64_t rest = e, place = 0, stride = 1;
        for (size_t d = sum.size(); d-- > 0;) {
          if (shape[d] > 1) place += rest % sum[d] * stride;
          stride *= shape[d];
          rest /= sum[d];
        }
        return values[static_cast<size_t>(place)];
      };
      result.push_back(at(x, xs) + at(y, ys));
    }
    return result;
  }
  void ExpectSum(const Shape& x, const Shape& y, const Shape& sum) {
    const Response response = Run({x, y});
    ASSERT_TRUE(response.status.ok()) << response.status;
    EXPECT_EQ(response.outputs[0].shape, sum);
    EXPECT_EQ(Floats(response), SumOf(x, y, sum));
  }
  std::vector<std::string> Labels() const {
    std::vector<std::string> labels;
    for (const ModelAxis& axis : model_->axes()) labels.push_back(axis.label);
    return labels;
  }

  const TempFolder folder_;
  EngineFixture fixture_;
  std::shared_ptr<Model> model_;
};

TEST_F(SplitAxesTest, OneNameForEveryDimOfAnInputIsTakenApart) {
  ModelBuilder b;
  b.Input("x", {"dynamic", "dynamic"}).Output("y");
  b.Node("Relu", {"x"}, {"y"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  for (const Shape& shape : {Shape{2, 3}, Shape{1, 7}, Shape{4, 4}}) {
    const Response response = Run({shape});
    ASSERT_TRUE(response.status.ok()) << response.status;
    EXPECT_EQ(response.outputs[0].shape, shape);
    EXPECT_EQ(Floats(response), ValuesOf(0, shape));
  }
}

TEST_F(SplitAxesTest, ANameThatTheOpsForceStays) {
  ModelBuilder b;
  b.Input("x", {"batch", "side", "side"}).Output("z");
  SetAttribute(b.Node("Transpose", {"x"}, {"t"}), "perm", std::vector<int64_t>{0, 2, 1});
  b.Node("Add", {"x", "t"}, {"z"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  EXPECT_EQ(Labels(), (std::vector<std::string>{"batch", "sequence"}));
  EXPECT_EQ(Run({{1, 3, 3}}).status, absl::OkStatus());
  const absl::Status refused = Run({{1, 3, 4}}).status;
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'side' is 4 here and 3 in input 'x'"));
}

TEST_F(SplitAxesTest, InputsThatShareANameMayHaveOtherSizes) {
  ModelBuilder b;
  b.Input("x", {"seq"}).Input("y", {"seq"}).Output("z");
  SetAttribute(b.Node("Concat", {"x", "y"}, {"z"}), "axis", int64_t{0});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  for (const auto& [x, y] : std::vector<std::pair<int64_t, int64_t>>{{2, 2}, {2, 5}, {5, 2}}) {
    const Response response = Run({{x}, {y}});
    ASSERT_TRUE(response.status.ok()) << response.status;
    std::vector<float> both = ValuesOf(0, {x});
    for (const float value : ValuesOf(1, {y})) both.push_back(value);
    EXPECT_EQ(Floats(response), both);
  }
  EXPECT_EQ(Run({{2}, {5}}).info.bucket, "exact");
  EXPECT_EQ(Run({{2}, {5}}).info.capture, CaptureOutcome::kReplayed);
}

TEST_F(SplitAxesTest, ADimThatBroadcastsMayBeOne) {
  ModelBuilder b;
  b.Input("x", {"b", "h", "q", "k"}).Input("mask", {"b", "h", "q", "k"}).Output("z");
  b.Node("Add", {"x", "mask"}, {"z"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  const Shape x = {2, 3, 4, 5};
  for (const Shape& mask : {Shape{2, 3, 4, 5}, Shape{2, 1, 1, 5}, Shape{1, 1, 4, 5},
                            Shape{1, 1, 1, 1}, Shape{2, 1, 4, 1}}) {
    ExpectSum(x, mask, x);
    ExpectSum(mask, x, x);
  }
  ExpectSum({2, 1, 4, 1}, {1, 3, 1, 5}, x);
}

// The variant's own name for the rows of `x` is the model's for all rows: they are counted in
// neither of the two.
TEST_F(SplitAxesTest, DimsWithoutNamesBroadcastAsWell) {
  ModelBuilder b;
  b.Input("x", {"", ""}).Input("mask", {"", ""}).Output("z");
  b.Node("Add", {"x", "mask"}, {"sum"});
  b.Node("Mul", {"sum", "sum"}, {"square"});
  b.Node("Sub", {"square", "square"}, {"nothing"});
  b.Node("Add", {"sum", "nothing"}, {"z"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  ExpectSum({1, 5}, {3, 1}, {3, 5});
  ExpectSum({3, 1}, {1, 5}, {3, 5});
  ExpectSum({1, 5}, {3, 5}, {3, 5});
  ExpectSum({3, 5}, {3, 5}, {3, 5});
}

// One row of `y` stands for as many as `x` has, but for a branch that asks how many there are.
TEST_F(SplitAxesTest, OneRowIsOneRowWhereRowsDecide) {
  ModelBuilder b;
  b.Input("x", {"batch", "2"}).Input("y", {"batch", "2"}).Output("z");
  b.Node("Shape", {"y"}, {"shape"});
  b.Initializer<int64_t>("at_zero", onnx::TensorProto::INT64, {}, {0});
  b.Initializer<int64_t>("one", onnx::TensorProto::INT64, {}, {1});
  b.Node("Gather", {"shape", "at_zero"}, {"rows"});
  b.Node("Equal", {"rows", "one"}, {"is_one"});
  auto& node = b.Node("If", {"is_one"}, {"chosen"}, "choice");
  onnx::GraphProto& first = AddBranch(node, "then_branch");
  AddBranchNode(first, "Identity", {"y"}, "same");
  first.add_output()->set_name("same");
  onnx::GraphProto& second = AddBranch(node, "else_branch");
  AddBranchNode(second, "Add", {"y", "y"}, "twice");
  second.add_output()->set_name("twice");
  b.Node("Add", {"x", "chosen"}, {"z"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  // Asked repeatedly: findings about one change nothing for the other.
  for (int i = 0; i < 3; ++i) {
    ExpectSum({3, 2}, {1, 2}, {3, 2});
    const Response more = Run({{3, 2}, {3, 2}});
    ASSERT_TRUE(more.status.ok()) << more.status;
    std::vector<float> expected = ValuesOf(0, {3, 2});
    const std::vector<float> y = ValuesOf(1, {3, 2});
    for (size_t e = 0; e < expected.size(); ++e) expected[e] += 2 * y[e];
    EXPECT_EQ(Floats(more), expected);
  }
}

TEST_F(SplitAxesTest, WhatCannotBeIsRefusedWithBothSizes) {
  ModelBuilder b;
  b.Input("x", {"batch", "n"}).Input("y", {"batch", "n"}).Output("z");
  b.Node("Add", {"x", "y"}, {"z"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  const auto measured = [&](const std::vector<Shape>& shapes) {
    const std::vector<float> zeros(1024);
    Request request;
    for (const Shape& shape : shapes) request.inputs.push_back({shape, zeros.data()});
    return model_->Measure(request).status();
  };
  // Known before anything is compiled.
  EXPECT_THAT(std::string(measured({{2, 3}, {2, 4}}).message()),
              HasSubstr("'n' is 4 here and 3 in input 'x'"));
  EXPECT_THAT(std::string(measured({{2, 3}, {3, 3}}).message()), HasSubstr("'batch' is 3 here"));
  EXPECT_EQ(measured({{2, 3}, {2}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(measured({{0, 3}, {1, 3}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(measured({{2, 3}, {1, 3}}), absl::OkStatus());
}

// Only compiling shows that the one row of `x` cannot be repeated.
TEST_F(SplitAxesTest, SizesThatOnlyTheModelRefusesNameItsNode) {
  ModelBuilder b;
  b.Input("x", {"batch", "2"}).Input("y", {"batch", "2"}).Output("z");
  SetAttribute(b.Node("Concat", {"x", "y"}, {"z"}, "join"), "axis", int64_t{1});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  const absl::Status refused = Run({{1, 2}, {3, 2}}).status;
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("'batch' is 3 here and 1 in input 'x'"), HasSubstr("join")));
}

TEST_F(SplitAxesTest, EqualSizesRunAsBefore) {
  ModelBuilder b;
  b.Input("x", {"batch", "n"}).Input("y", {"batch", "n"}).Output("z");
  b.Node("Add", {"x", "y"}, {"z"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  EXPECT_EQ(Labels(), (std::vector<std::string>{"batch", "sequence"}));
  EXPECT_EQ(Run({{2, 3}, {2, 3}}).info.bucket, "b2_s16");
  ExpectSum({2, 3}, {1, 3}, {2, 3});
  ExpectSum({2, 3}, {2, 1}, {2, 3});
  EXPECT_EQ(Run({{2, 3}, {2, 3}}).info.bucket, "b2_s16");
}

// Heads are the model's: a mask has the same number, or one for all of them.
TEST_F(SplitAxesTest, ASizeOfTheModelsOwnBroadcastsWithOne) {
  ModelBuilder b;
  b.Input("x", {"batch", "3", "n"}).Input("mask", {"batch", "heads", "n"}).Output("z");
  b.Node("Add", {"x", "mask"}, {"z"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  ExpectSum({2, 3, 5}, {2, 1, 5}, {2, 3, 5});
  ExpectSum({2, 3, 5}, {2, 3, 5}, {2, 3, 5});
  ExpectSum({2, 3, 5}, {1, 3, 1}, {2, 3, 5});
  EXPECT_EQ(Run({{2, 3, 5}, {2, 2, 5}}).status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace reprise

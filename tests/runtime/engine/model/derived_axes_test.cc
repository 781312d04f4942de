// Sizes that follow from others, though the file gives them names of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DerivedAxesTest : public testing::Test {
 protected:
  void Load(const ModelBuilder& b) {
    const auto model =
        fixture_.engine.Load({.id = {"m", 1}, .path = folder_.Write("m.onnx", b.Bytes())});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }
  // Runs over inputs of ones; sums of the outputs count the added elements.
  Response Run(const std::vector<Shape>& shapes) {
    const std::vector<float> ones(1 << 16, 1);
    Request request;
    for (const Shape& shape : shapes) request.inputs.push_back({shape, ones.data()});
    return fixture_.engine.RunOne(*model_, request, *fixture_.stream);
  }
  static double Sum(const Response& response) {
    const OutputTensor& y = response.outputs[0];
    const auto* values = reinterpret_cast<const float*>(y.bytes.data());
    double sum = 0;
    for (size_t i = 0; i < y.bytes.size() / sizeof(float); ++i) sum += values[i];
    return sum;
  }

  const TempFolder folder_;
  EngineFixture fixture_;
  std::shared_ptr<Model> model_;
};

// A cache grows by the new tokens; a bias lies along both, and would broadcast at 1.
TEST_F(DerivedAxesTest, TheSumOfTwo) {
  ModelBuilder b;
  b.Input("past", {"batch", "past", "4"}).Input("x", {"batch", "seq", "4"});
  b.Input("bias", {"batch", "total", "4"}).Output("y");
  onnx::AttributeProto& axis = *b.Node("Concat", {"past", "x"}, {"all"}).add_attribute();
  axis.set_name("axis");
  axis.set_type(onnx::AttributeProto::INT);
  axis.set_i(1);
  b.Node("Add", {"all", "bias"}, {"y"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  for (const auto& [past, seq] : std::vector<std::pair<int64_t, int64_t>>{{5, 3}, {0, 7}, {9, 1}}) {
    const Response response = Run({{2, past, 4}, {2, seq, 4}, {2, past + seq, 4}});
    ASSERT_TRUE(response.status.ok()) << response.status;
    EXPECT_EQ(response.outputs[0].shape, (Shape{2, past + seq, 4}));
    EXPECT_EQ(Sum(response), 2.0 * 2 * 4 * (past + seq));
  }
  const Response wrong = Run({{2, 5, 4}, {2, 3, 4}, {2, 9, 4}});
  EXPECT_THAT(std::string(wrong.status.message()),
              AllOf(HasSubstr("'bias'"), HasSubstr("past + seq"), HasSubstr("9")));
}

// Halves are no sums: such requests run at their exact sizes.
TEST_F(DerivedAxesTest, TheHalfOfAnother) {
  ModelBuilder b;
  b.Input("x", {"batch", "3", "t"}).Input("skip", {"batch", "3", "u"}).Output("y");
  onnx::NodeProto& pool = b.Node("MaxPool", {"x"}, {"half"});
  for (const char* name : {"kernel_shape", "strides"}) {
    onnx::AttributeProto& attribute = *pool.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    attribute.add_ints(2);
  }
  b.Node("Add", {"half", "skip"}, {"y"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  for (const int64_t t : {2, 7, 20, 21, 64, 130}) {
    const Response response = Run({{2, 3, t}, {2, 3, t / 2}});
    ASSERT_TRUE(response.status.ok()) << t << ": " << response.status;
    EXPECT_EQ(response.outputs[0].shape, (Shape{2, 3, t / 2}));
    EXPECT_EQ(Sum(response), 2.0 * 2 * 3 * (t / 2));
  }
}

// Two names of one batch: one row of either serves all rows of the other.
TEST_F(DerivedAxesTest, OneRowForAll) {
  ModelBuilder b;
  b.Input("users", {"u", "4"}).Input("items", {"k", "4"}).Output("y");
  b.Node("Mul", {"users", "items"}, {"y"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  const std::vector<float> user = {1, 2, 3, 4};
  std::vector<float> items(1000 * 4);
  for (size_t i = 0; i < items.size(); ++i) items[i] = static_cast<float>(i % 97);
  for (const int64_t rows : {1, 3, 1000}) {
    for (const bool user_first : {true, false}) {
      const InputTensor one = {{1, 4}, user.data()}, many = {{rows, 4}, items.data()};
      const Response response = fixture_.engine.RunOne(
          *model_, {.inputs = {user_first ? one : many, user_first ? many : one}},
          *fixture_.stream);
      ASSERT_TRUE(response.status.ok()) << response.status;
      ASSERT_EQ(response.outputs[0].shape, (Shape{rows, 4}));
      const auto* y = reinterpret_cast<const float*>(response.outputs[0].bytes.data());
      for (int64_t i = 0; i < rows * 4; ++i) ASSERT_EQ(y[i], user[i % 4] * items[i]);
    }
  }
  const Response wrong = Run({{2, 4}, {3, 4}});
  EXPECT_EQ(wrong.status.code(), absl::StatusCode::kInvalidArgument);
}

// A sum over all rows of one input is another one where that is repeated.
TEST_F(DerivedAxesTest, RowsThatSeeEachOtherAreNotRepeated) {
  ModelBuilder b;
  b.Input("x", {"n", "4"}).Input("z", {"m", "4"}).Output("y");
  b.Node("ReduceSum", {"z"}, {"s"});
  b.Node("Add", {"x", "z"}, {"xz"});
  b.Node("Add", {"xz", "s"}, {"y"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  const Response one = Run({{3, 4}, {1, 4}}), all = Run({{3, 4}, {3, 4}});
  ASSERT_TRUE(one.status.ok() && all.status.ok()) << one.status << all.status;
  // A sum over one row of ones, and over three.
  EXPECT_EQ(Sum(one), 12 * (2.0 + 4));
  EXPECT_EQ(Sum(all), 12 * (2.0 + 12));
}

// Half of one length times another, in one dim: along the other alone it looks like a line, whose
// slope depends on the first.
TEST_F(DerivedAxesTest, TheProductOfAHalfAndAnother) {
  ModelBuilder b;
  b.Input("x", {"batch", "2", "h", "w"}).Output("y");
  onnx::NodeProto& pool = b.Node("MaxPool", {"x"}, {"half"});
  for (const char* name : {"kernel_shape", "strides"}) {
    onnx::AttributeProto& attribute = *pool.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    attribute.add_ints(1);
    attribute.add_ints(2);
  }
  b.Initializer<int64_t>("flat", onnx::TensorProto::INT64, {3}, {0, 2, -1});
  b.Node("Reshape", {"half", "flat"}, {"y"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  for (const auto& [h, w] :
       std::vector<std::pair<int64_t, int64_t>>{{24, 24}, {16, 24}, {24, 16}, {5, 7}, {33, 2}}) {
    const Response response = Run({{3, 2, h, w}});
    ASSERT_TRUE(response.status.ok()) << response.status;
    EXPECT_EQ(response.outputs[0].shape, (Shape{3, 2, h * (w / 2)}));
    EXPECT_EQ(Sum(response), 3.0 * 2 * h * (w / 2));
  }
}

// Two less than a length that may be one: shorter ones are refused, the model is not.
TEST_F(DerivedAxesTest, FewerThanAnother) {
  ModelBuilder b;
  b.Input("x", {"batch", "4", "l"}).Input("z", {"batch", "2", "m"}).Output("y");
  b.Floats("w", {2, 4, 3}, std::vector<float>(24, 1));
  b.Node("Conv", {"x", "w"}, {"c"});
  b.Node("Add", {"c", "z"}, {"y"});
  ASSERT_NO_FATAL_FAILURE(Load(b));
  for (const int64_t l : {3, 4, 20}) {
    const Response response = Run({{1, 4, l}, {1, 2, l - 2}});
    ASSERT_TRUE(response.status.ok()) << response.status;
    EXPECT_EQ(Sum(response), 2.0 * (l - 2) * 13);
  }
}

}  // namespace
}  // namespace reprise

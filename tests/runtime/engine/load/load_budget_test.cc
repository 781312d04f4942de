// Models of a few bytes that ask a load for hours or gigabytes.
#include "runtime/base/load_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/cpu_clock.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"
#include "tests/testing/time_units.h"

namespace reprise {
namespace {

using testing::HasSubstr;

class LoadBudgetModelTest : public testing::Test {
 protected:
  absl::StatusOr<std::shared_ptr<Model>> Load(const ModelBuilder& b) {
    return fixture_.engine.Load({.id = {"m", 1}, .path = folder_.Write("m.onnx", b.Bytes())});
  }
  std::string Refusal(const ModelBuilder& b) {
    const auto model = Load(b);
    EXPECT_FALSE(model.ok());
    return std::string(model.status().message());
  }
  // Loads `b`, a run of which would take gigabytes, by reading it alone.
  void ExpectRead(const ModelBuilder& b) {
    const ThreadCpuClock clock;
    const int64_t start_ns = clock.NowNs();
    const auto model = Load(b);
    EXPECT_LT(clock.NowNs() - start_ns, 2 * kSecond);
    ASSERT_TRUE(model.ok()) << model.status();
    ASSERT_FALSE((*model)->axes().empty());
    for (const ModelAxis& axis : (*model)->axes()) {
      EXPECT_TRUE(axis.certificate.certified) << axis.label << ": " << axis.certificate.reason;
    }
  }

  const TempFolder folder_;
  EngineFixture fixture_;
};

TEST_F(LoadBudgetModelTest, RowsOfAGigabyteAreRead) {
  ModelBuilder b;
  b.Input("x", {"batch", "268435456"}).Output("y");
  SetAttribute(b.Node("ReduceMax", {"x"}, {"y"}), "axes", std::vector<int64_t>{1});
  ExpectRead(b);
}

TEST_F(LoadBudgetModelTest, GigabytesOfARunAreRead) {
  ModelBuilder b;
  b.Input("x", {"batch", "1"}).Output("y");
  b.Initializer<int64_t>("wide", onnx::TensorProto::INT64, {2}, {1, 300000000});
  b.Node("Expand", {"x", "wide"}, {"e"});
  SetAttribute(b.Node("CumSum", {"e", "axis"}, {"c"}), "reverse", int64_t{1});
  b.Initializer<int64_t>("axis", onnx::TensorProto::INT64, {}, {1});
  SetAttribute(b.Node("ReduceMax", {"c"}, {"y"}), "axes", std::vector<int64_t>{1});
  ExpectRead(b);
}

TEST_F(LoadBudgetModelTest, AThousandDimsAreRefusedByName) {
  ModelBuilder b;
  b.Input("x", {"batch", "4"}).Output("u1000");
  b.Initializer<int64_t>("axis", onnx::TensorProto::INT64, {1}, {0});
  b.Node("Unsqueeze", {"x", "axis"}, {"u1"}, "n1");
  for (int i = 1; i < 1000; ++i) {
    const std::string next = std::to_string(i + 1);
    b.Node("Unsqueeze", {"u" + std::to_string(i), "axis"}, {"u" + next}, "n" + next);
  }
  EXPECT_THAT(Refusal(b), HasSubstr("dims, at most 64 are supported"));
}

// y = x + the mean of many constants of 60 MB each.
ModelBuilder ManyConstants(int count) {
  ModelBuilder b;
  b.Input("x", {"batch", "1"}).Output("y");
  b.Initializer<int64_t>("large", onnx::TensorProto::INT64, {1}, {15 << 20});
  b.Initializer<int64_t>("axis", onnx::TensorProto::INT64, {}, {0});
  std::vector<std::string> sums = {"x"};
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    auto& made = b.Node("ConstantOfShape", {"large"}, {"c" + number}, "make" + number);
    auto* value = made.add_attribute();
    value->set_name("value");
    value->set_type(onnx::AttributeProto::TENSOR);
    value->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
    value->mutable_t()->add_dims(1);
    value->mutable_t()->add_float_data(static_cast<float>(i));
    b.Node("CumSum", {"c" + number, "axis"}, {"d" + number}, "sum" + number);
    SetAttribute(b.Node("ReduceMean", {"d" + number}, {"m" + number}, "mean" + number), "axes",
                 std::vector<int64_t>{0});
    sums.push_back("m" + number);
  }
  b.Node("Sum", sums, {"y"});
  return b;
}

// Some are folded, the others are computed by each request, or refused there.
TEST_F(LoadBudgetModelTest, ConstantsOfGigabytesAreNotKept) {
  const ThreadCpuClock clock;
  const int64_t start_ns = clock.NowNs();
  const auto model = Load(ManyConstants(40));
  EXPECT_LT(clock.NowNs() - start_ns, 20 * kSecond);
  if (!model.ok()) {
    EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted);
  }
}

// A weight of a kilobyte that is repeated to 2 GB.
TEST_F(LoadBudgetModelTest, WeightsAreNotRepeatedToGigabytes) {
  ModelBuilder b;
  b.Input("x", {"batch", "1"}).Output("y");
  b.Floats("w", {1, 256}, std::vector<float>(256, 1));
  b.Initializer<int64_t>("times", onnx::TensorProto::INT64, {2}, {1, 1 << 21});
  b.Node("Tile", {"w", "times"}, {"tiled"});
  SetAttribute(b.Node("ReduceMax", {"tiled"}, {"row"}), "axes", std::vector<int64_t>{1});
  b.Node("Add", {"x", "row"}, {"y"});
  ExpectRead(b);
}

// 2^36 multiplications of constants.
TEST_F(LoadBudgetModelTest, ProductsOfLargeConstantsAreNotFolded) {
  ModelBuilder b;
  b.Input("x", {"batch", "4096"}).Output("y");
  b.Initializer<int64_t>("large", onnx::TensorProto::INT64, {2}, {4096, 4096});
  b.Node("ConstantOfShape", {"large"}, {"zeros"});
  b.Node("MatMul", {"zeros", "zeros"}, {"product"});
  SetAttribute(b.Node("ReduceMax", {"product"}, {"row"}), "axes", std::vector<int64_t>{0});
  b.Node("Add", {"x", "row"}, {"y"});
  const ThreadCpuClock clock;
  const int64_t start_ns = clock.NowNs();
  const auto model = Load(b);
  EXPECT_LT(clock.NowNs() - start_ns, int64_t{20} * 1'000'000'000);
  ASSERT_TRUE(model.ok()) << model.status();
}

}  // namespace
}  // namespace reprise

// Numbers that clients send, which may lie beyond any that a model or a measurement thinks of:
// times in seconds since 1970, squares that wrap around, counts that reach a capacity by many rows
// alone. Their requests run exact, and say so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/engine/load/padding_cases/parts.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using onnx::TensorProto;
using testing::HasSubstr;

class ClientNumbersTest : public testing::Test {
 protected:
  void Load(const ModelBuilder& b) {
    const std::string path = folder_.Write("m.onnx", b.Bytes());
    const auto load = [&](const std::string& name, std::set<std::string> no_padding) {
      auto model = fixture_.engine.Load({.id = {name, 1},
                                         .path = path,
                                         .buckets = {{"sequence", {16, 64}}},
                                         .no_padding = std::move(no_padding)});
      EXPECT_TRUE(model.ok()) << model.status();
      return model.ok() ? *model : nullptr;
    };
    padded_ = load("padded", {});
    exact_ = load("exact", {"batch", "sequence"});
    ASSERT_TRUE(padded_ != nullptr && exact_ != nullptr);
  }
  const AxisCertificate& CertificateOf(const std::string& axis) const {
    return std::find_if(padded_->axes().begin(), padded_->axes().end(),
                        [&](const ModelAxis& one) { return one.label == axis; })
        ->certificate;
  }
  // Returns the bucket that answered, whose answer equals the exact shape's, bit by bit.
  std::string Run(const Request& request) {
    const Response got = fixture_.engine.RunOne(*padded_, request, *fixture_.stream);
    const Response want = fixture_.engine.RunOne(*exact_, request, *fixture_.stream);
    EXPECT_TRUE(got.status.ok()) << got.status;
    EXPECT_TRUE(want.status.ok()) << want.status;
    if (!got.status.ok() || !want.status.ok()) return "";
    EXPECT_EQ(got.outputs[0].shape, want.outputs[0].shape);
    EXPECT_EQ(got.outputs[0].bytes, want.outputs[0].bytes);
    return got.info.bucket;
  }

  const TempFolder folder_;
  EngineFixture fixture_;
  std::shared_ptr<Model> padded_, exact_;
};

// `op` over `x` where the mask is 1, with `fill` in the place of others.
ModelBuilder Extreme(const std::string& op, float fill, bool bounded = false) {
  ModelBuilder b;
  b.Input("x", {"batch", "sequence"});
  b.Input("attention_mask", {"batch", "sequence"}, TensorProto::INT64);
  AddNumber(b, "fill", fill);
  AddCast(b, "attention_mask", "counts", TensorProto::BOOL);
  if (bounded) b.Node("Tanh", {"x"}, {"small"});
  b.Node("Where", {"counts", bounded ? "small" : "x", "fill"}, {"left"});
  AddReduce(b, op, "left", "y", {1});
  b.Output("y");
  return b;
}

TEST_F(ClientNumbersTest, TheEarliestTimeIsNotThePadding) {
  const std::vector<int64_t> mask = {1, 1, 1};
  for (const auto& [op, sign] : {std::pair{"ReduceMin", 1.0f}, std::pair{"ReduceMax", -1.0f}}) {
    ASSERT_NO_FATAL_FAILURE(Load(Extreme(op, sign * 1e9f)));
    EXPECT_TRUE(CertificateOf("sequence").certified) << CertificateOf("sequence").reason;
    const std::vector<float> times = {sign * 1.7e9f, sign * 1.75e9f, sign * 1.8e9f};
    EXPECT_NE(Run({.inputs = {{{1, 3}, times.data()}, {{1, 3}, mask.data()}}}), "exact");
  }
}

TEST_F(ClientNumbersTest, ExtremesUnderTheEndOfTheirTypeArePadded) {
  const std::vector<int64_t> mask = {1, 1, 0};
  const std::vector<float> x = {1.7e9f, -5, 3};
  ASSERT_NO_FATAL_FAILURE(Load(Extreme("ReduceMax", kLowestFloat)));
  EXPECT_TRUE(CertificateOf("sequence").certified) << CertificateOf("sequence").reason;
  EXPECT_NE(Run({.inputs = {{{1, 3}, x.data()}, {{1, 3}, mask.data()}}}), "exact");
  ASSERT_NO_FATAL_FAILURE(Load(Extreme("ReduceMax", -1e9f, /*bounded=*/true)));
  EXPECT_TRUE(CertificateOf("sequence").certified) << CertificateOf("sequence").reason;
  EXPECT_NE(Run({.inputs = {{{1, 3}, x.data()}, {{1, 3}, mask.data()}}}), "exact");
}

TEST_F(ClientNumbersTest, IntegersUnderANumberThatTheyMayReach) {
  ModelBuilder b;
  b.Input("x", {"batch", "sequence"}, TensorProto::INT64);
  b.Input("attention_mask", {"batch", "sequence"}, TensorProto::INT64);
  AddInteger(b, "fill", 4'000'000'000);
  AddCast(b, "attention_mask", "counts", TensorProto::BOOL);
  b.Node("Where", {"counts", "x", "fill"}, {"left"});
  AddReduce(b, "ReduceMin", "left", "y", {1});
  b.Output("y");
  ASSERT_NO_FATAL_FAILURE(Load(b));
  const std::vector<int64_t> mask = {1, 1, 1};
  const std::vector<int64_t> milliseconds = {1'700'000'000'000, 1'750'000'000'000,
                                             1'800'000'000'000};
  EXPECT_NE(Run({.inputs = {{{1, 3}, milliseconds.data()}, {{1, 3}, mask.data()}}}), "exact");
}

TEST_F(ClientNumbersTest, SquaresThatWrapAroundAreAboveThePadding) {
  ModelBuilder b;
  b.Input("x", {"batch", "sequence"}, TensorProto::INT32);
  b.Input("attention_mask", {"batch", "sequence"}, TensorProto::INT64);
  AddCast(b, "attention_mask", "counts", TensorProto::INT32);
  b.Node("Mul", {"x", "x"}, {"squares"});
  b.Node("Mul", {"squares", "counts"}, {"left"});
  AddReduce(b, "ReduceMax", "left", "y", {1});
  b.Output("y");
  ASSERT_NO_FATAL_FAILURE(Load(b));
  const std::vector<int64_t> mask = {1, 1, 1};
  const std::vector<int32_t> x = {50000, 50001, 50002};  // 2.5e9, which is -1.8e9 of 32 bits
  EXPECT_NE(Run({.inputs = {{{1, 3}, x.data()}, {{1, 3}, mask.data()}}}), "exact");
}

// As GShard and Switch route tokens: the first 60 of all rows that want an expert get it.
TEST_F(ClientNumbersTest, PaddingTakesNoPlacesOfAnExpert) {
  ModelBuilder b;
  b.Input("x", {"batch", "sequence", "2"});
  AddIntegers(b, "flat", {-1, 2});
  AddInteger(b, "depth", 2);
  AddInteger(b, "along", 0);
  AddNumber(b, "capacity", 60);
  b.Floats("values", {2}, {0, 1});
  AddIntegers(b, "one", {1});
  b.Node("Reshape", {"x", "flat"}, {"tokens"});
  auto& best = b.Node("ArgMax", {"tokens"}, {"expert"});
  SetAttribute(best, "axis", int64_t{1});
  SetAttribute(best, "keepdims", int64_t{0});
  b.Node("OneHot", {"expert", "depth", "values"}, {"wanted"});
  b.Node("CumSum", {"wanted", "along"}, {"counted"}, "/router/CumSum");
  b.Node("Mul", {"counted", "wanted"}, {"place"});
  b.Node("LessOrEqual", {"place", "capacity"}, {"fits"});
  AddCast(b, "fits", "fits.float");
  b.Node("Mul", {"wanted", "fits.float"}, {"gets"});
  SetAttribute(b.Node("ReduceSum", {"gets", "one"}, {"kept"}), "keepdims", int64_t{1});
  b.Node("Mul", {"tokens", "kept"}, {"routed"});
  b.Node("Shape", {"x"}, {"shape"});
  b.Node("Reshape", {"routed", "shape"}, {"y"});
  b.Output("y");
  ASSERT_NO_FATAL_FAILURE(Load(b));
  EXPECT_FALSE(CertificateOf("sequence").certified);
  EXPECT_FALSE(CertificateOf("batch").certified);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const auto& [rows, length] : {std::pair{7, 9}, std::pair{7, 25}, std::pair{40, 5}}) {
    std::vector<float> x(rows * length * 2);
    for (float& value : x) value = normal(random);
    // All tokens want the first expert.
    for (size_t i = 0; i < x.size(); i += 2) x[i] = std::abs(x[i]) + 5;
    EXPECT_EQ(Run({.inputs = {{{rows, length, 2}, x.data()}}}), "exact") << rows << " " << length;
  }
}

// The sequence is padded where rows may not be: that is no exact shape.
TEST_F(ClientNumbersTest, ABucketOfTheSequenceAloneIsSaid) {
  ModelBuilder b;
  b.Input("x", {"batch", "sequence", "2"});
  AddReduce(b, "ReduceMean", "x", "mean", {0}, true);
  b.Node("Sub", {"x", "mean"}, {"y"});
  b.Output("y");
  ASSERT_NO_FATAL_FAILURE(Load(b));
  EXPECT_FALSE(CertificateOf("batch").certified);
  ASSERT_TRUE(CertificateOf("sequence").certified) << CertificateOf("sequence").reason;
  const std::vector<float> x(3 * 100 * 2, 0.5f);
  EXPECT_EQ(Run({.inputs = {{{3, 5, 2}, x.data()}}}), "s16");
  EXPECT_EQ(Run({.inputs = {{{1, 16, 2}, x.data()}}}), "exact");
  EXPECT_EQ(Run({.inputs = {{{1, 100, 2}, x.data()}}}), "exact");
  EXPECT_THAT(padded_->BucketLabels(), testing::ElementsAre("s16", "s64"));
}

}  // namespace
}  // namespace reprise

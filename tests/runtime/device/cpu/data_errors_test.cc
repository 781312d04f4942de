// An index or a length out of range is reported and answered as 0.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

using ::testing::IsEmpty;

class DataErrorsTest : public DeviceOfTier {};

TEST_P(DataErrorsTest, IndexOutOfRangeIsReportedAndAnsweredWithRowZero) {
  for (const char* text :
       {"param %t: f32[5, 64] = p0\ninput %i: i64[6]\n%y: ? = Gather(%t, %i)\noutput %y",
        "param %t: f32[5, 64] = p0\ninput %i: i64[6]\n%y: ? = reprise.EmbeddingSum(%t, %i)\noutput "
        "%y"}) {
    NodeRun run(text);
    run.inputs[1] = Tensor::FromVector<int64_t>(DType::kInt64, {6}, {0, 4, 5, -5, -6, 1});
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    const Tensor got = run.RunOption(device_, options[0], 2)[0];
    ASSERT_EQ(run.errors.errors.size(), 2u);
    std::set<int64_t> values;
    for (const RecordedError& error : run.errors.errors) {
      EXPECT_EQ(error.operand, 1);
      EXPECT_EQ(error.low, -5);
      EXPECT_EQ(error.high, 4);
      EXPECT_EQ(error.element, error.value == 5 ? 2 : 4);
      values.insert(error.value);
    }
    EXPECT_THAT(values, testing::ElementsAre(-6, 5));
    run.inputs[1] = Tensor::FromVector<int64_t>(DType::kInt64, {6}, {0, 4, 0, 0, 0, 1});
    ExpectClose(got, run.Reference()[0]);
  }
}

TEST_P(DataErrorsTest, ElementIndexOutOfRangeIsReportedOnceAndAnsweredWithElementZero) {
  for (const std::string& text : std::vector<std::string>{
           "input %x: f32[5]\ninput %i: i64[6]\n%y: ? = GatherElements(%x, %i)\noutput %y",
           "input %x: f32[5, 700]\ninput %i: i64[6, 1]\n%y: ? = GatherND(%x, %i)\noutput %y",
           "input %x: f32[5]\ninput %i: i64[6]\ninput %u: f32[6]\n%y: ? = ScatterElements(%x, %i, "
           "%u)\noutput %y",
           "input %x: f32[5, 700]\ninput %i: i64[6, 1]\ninput %u: f32[6, 700]\n%y: ? = "
           "ScatterND(%x, %i, %u)\noutput %y"}) {
    SCOPED_TRACE(text);
    NodeRun run(text);
    const Shape shape = run.inputs[1]->shape();
    run.inputs[1] = Tensor::FromVector<int64_t>(DType::kInt64, shape, {4, 5, 2, -5, -6, 1});
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    const Tensor got = run.RunOption(device_, options[0], 2)[0];
    std::set<std::pair<int64_t, int64_t>> reported;
    for (const RecordedError& error : run.errors.errors) {
      EXPECT_EQ(error.operand, 1);
      EXPECT_EQ(error.low, -5);
      EXPECT_EQ(error.high, 4);
      reported.insert({error.element, error.value});
    }
    EXPECT_EQ(run.errors.errors.size(), 2u);
    EXPECT_THAT(reported, testing::ElementsAre(std::pair<int64_t, int64_t>{1, 5},
                                               std::pair<int64_t, int64_t>{4, -6}));
    run.inputs[1] = Tensor::FromVector<int64_t>(DType::kInt64, shape, {4, 0, 2, -5, 0, 1});
    ExpectClose(got, run.Reference()[0]);
  }
}

TEST_P(DataErrorsTest, RowsOfRecurrentLayersEndAtTheirLengths) {
  for (const char* text :
       {"input %x: f32[7, 5, 12]\nparam %w: f32[2, 80, 12] = p0\nparam %r: f32[2, 80, 20] = p1\n"
        "param %b: f32[2, 160] = p2\ninput %l: i32[5]\ninput %h0: f32[2, 5, 20]\n"
        "input %c0: f32[2, 5, 20]\n%y: ?, %h: ?, %c: ? = LSTM(%x, %w, %r, %b, %l, %h0, %c0) "
        "{hidden_size = 20, direction = \"bidirectional\"}\noutput %y\noutput %h\noutput %c",
        "input %x: f32[7, 5, 12]\nparam %w: f32[1, 51, 12] = p0\nparam %r: f32[1, 51, 17] = p1\n"
        "param %b: f32[1, 102] = p2\ninput %l: i64[5]\ninput %h0: f32[1, 5, 17]\n"
        "%y: ?, %h: ? = GRU(%x, %w, %r, %b, %l, %h0) {hidden_size = 17, direction = \"reverse\"}\n"
        "output %y\noutput %h",
        "input %x: f32[7, 5, 12]\nparam %w: f32[1, 5, 12] = p0\nparam %r: f32[1, 5, 5] = p1\n"
        "param %b: f32[1, 10] = p2\ninput %l: i64[5]\n"
        "%y: ?, %h: ? = RNN(%x, %w, %r, %b, %l) {hidden_size = 5}\noutput %h"}) {
    SCOPED_TRACE(text);
    NodeRun run(text);
    const DType dtype = run.inputs[4]->dtype();
    const auto lengths = [&](const std::vector<int64_t>& values) {
      if (dtype == DType::kInt64) return Tensor::FromVector(dtype, {5}, values);
      return Tensor::FromVector(dtype, {5}, std::vector<int32_t>(values.begin(), values.end()));
    };
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    const auto agree = [&](const std::vector<Tensor>& got) {
      const std::vector<Tensor> expected = run.Reference();
      for (size_t i = 0; i < expected.size(); ++i) {
        if (run.graph.IsOutput(run.node().outputs[i])) ExpectClose(got[i], expected[i]);
      }
    };
    for (const std::vector<int64_t>& values :
         {std::vector<int64_t>{7, 3, 0, 5, 1}, {2, 2, 6, 1, 0}, {0, 0, 0, 0, 0}}) {
      run.inputs[4] = lengths(values);
      for (const int parts : {1, 2, 7}) agree(run.RunOption(device_, options[0], parts));
      EXPECT_THAT(run.errors.errors, IsEmpty());
    }
    // One that is none is reported and read as 0.
    run.inputs[4] = lengths({7, 8, 4, -1, 2});
    const std::vector<Tensor> got = run.RunOption(device_, options[0], 2);
    ASSERT_EQ(run.errors.errors.size(), 2u);
    EXPECT_EQ(run.errors.errors[0].operand, 4);
    EXPECT_EQ(run.errors.errors[0].value, 8);
    EXPECT_EQ(run.errors.errors[1].value, -1);
    run.inputs[4] = lengths({7, 0, 4, 0, 2});
    agree(got);
  }
}

TEST_P(DataErrorsTest, APlaceWithoutRoomInTheCacheIsReportedAndAnsweredWithWhatFits) {
  NodeRun run(
      "input %p: f32[3, 2, 4, 8]\ninput %r: f32[3, 2, 2, 8]\ninput %a: i64[3]\n"
      "const %l: i64[1] = {6}\n%y: ? = reprise.AppendRows(%p, %r, %a, %l)\noutput %y");
  const auto at = [](std::vector<int64_t> places) {
    return Tensor::FromVector<int64_t>(DType::kInt64, {3}, places);
  };
  run.inputs[2] = at({3, 5, -1});
  const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
  ASSERT_FALSE(options.empty());
  const Tensor got = run.RunOption(device_, options[0], 2)[0];
  std::set<std::pair<int64_t, int64_t>> reported;
  for (const RecordedError& error : run.errors.errors) {
    EXPECT_EQ(error.operand, 2);
    EXPECT_EQ(error.low, 0);
    EXPECT_EQ(error.high, 4);
    reported.insert({error.element, error.value});
  }
  EXPECT_THAT(reported, testing::ElementsAre(std::pair(1, 5), std::pair(2, -1)));
  EXPECT_EQ(run.errors.errors.size(), 2u);
  run.inputs[2] = at({3, 4, 0});
  ExpectClose(got, run.Reference()[0]);
}

INSTANTIATE_TEST_SUITE_P(Tiers, DataErrorsTest, testing::ValuesIn(cpu::EveryTier()), cpu::TierName);

}  // namespace
}  // namespace reprise

// Replays of fewer rows than their recipe has: the other rows have no part in any answer.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "runtime/base/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/recipe/compiler.h"
#include "tests/testing/interpreter.h"

namespace reprise {
namespace {

constexpr int64_t kRows = 4;

constexpr const char* kLarge = R"(graph {
  input %x: f32[n, 3, 256, 256]
  param %w: f32[6, 3, 3, 3] = p0
  param %b: f32[6] = p1
  %c: f32 = Conv(%x, %w, %b) {pads = [1, 1, 1, 1]}
  %s: f32 = Sigmoid(%c)
  %m: f32 = Mul(%c, %s)
  %e: f32 = Exp(%m)
  %t: f32 = Tanh(%e)
  %a: f32 = Add(%t, %c)
  %p: f32 = AveragePool(%a) {kernel_shape = [64, 64], strides = [64, 64]}
  %l: f32 = Softmax(%p) {axis = 1}
  output %a
  output %l
})";

class ReplayedRowsTest : public testing::Test {
 protected:
  ReplayedRowsTest() : stream_(*Stream::Create({.max_arena_bytes = 64 << 20})) {}

  void Compile(const char* text) {
    absl::StatusOr<Graph> graph = Parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status();
    ASSERT_TRUE(RunLoadPasses(*graph).ok());
    graph_ = *std::move(Specialize(*graph, {.axes = {{"n", kRows}}}));
    std::vector<Tensor>& parameters = parameters_;
    for (const Shape& shape : {Shape{6, 3, 3, 3}, Shape{6}, Shape{6}}) {
      parameters.push_back(Tensor::Make(DType::kFloat32, shape, [&](void* data) {
        auto* values = static_cast<float*>(data);
        for (int64_t i = 0; i < NumElements(shape); ++i) values[i] = draw_(random_);
      }));
    }
    auto recipe = reprise::Compile(
        *graph, MakeKey(FingerprintGraph(*graph), {.axes = {{"n", kRows}}}, device_.fingerprint()),
        {.device = &device_, .clock = &clock_, .batch_symbol = "n"});
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    recipe_ = *std::move(recipe);
    store_.emplace(parameters, ParameterStore::Options{.device = &device_});
    table_ = *store_->TableFor(recipe_);
    ASSERT_TRUE(stream_->Reserve(*recipe_).ok());
  }

  // Returns the first `live` rows of each output; everything that a replay may leave alone is no
  // number.
  std::vector<std::string> Replay(int64_t live, const std::vector<float>& x) {
    FirstDataError errors(*recipe_);
    Frame frame = stream_->MakeFrame(*recipe_, table_->addresses(), &errors);
    std::memset(stream_->inputs(), 0xff, recipe_->frame_bytes());
    const TensorSlot& input = recipe_->inputs[0];
    std::memcpy(stream_->inputs() + input.offset, x.data(), input.bytes / kRows * live);
    frame.live_rows = live;
    stream_->Replay(*recipe_, frame);
    std::vector<std::string> rows;
    for (size_t i = 0; i < recipe_->outputs.size(); ++i) {
      rows.emplace_back(reinterpret_cast<const char*>(frame.outputs[i]),
                        recipe_->outputs[i].bytes / kRows * live);
    }
    return rows;
  }

  Graph graph_;  // the graph for all rows, before its passes
  std::vector<Tensor> parameters_;
  std::mt19937 random_{7};
  std::normal_distribution<float> draw_;
  SteadyClock clock_;
  const CpuDevice device_{DetectIsa()};
  std::shared_ptr<const Recipe> recipe_;
  std::optional<ParameterStore> store_;
  std::shared_ptr<const ParameterTable> table_;
  std::unique_ptr<Stream> stream_;
};

class LiveRowsTest : public ReplayedRowsTest, public testing::WithParamInterface<const char*> {};

TEST_P(LiveRowsTest, AnswersAreTheSameToTheBitWhateverTheOtherRowsHold) {
  ASSERT_NO_FATAL_FAILURE(Compile(GetParam()));
  ASSERT_EQ(recipe_->rows, kRows);
  std::vector<float> x(recipe_->inputs[0].bytes / sizeof(float));
  for (float& value : x) value = draw_(random_);
  const std::vector<std::string> whole = Replay(kRows, x);
  const TensorSlot& input = recipe_->inputs[0];
  const auto expected =
      Interpret(graph_, {{input.name, Tensor::FromVector<float>(DType::kFloat32, input.shape, x)}},
                parameters_);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (size_t i = 0; i < whole.size(); ++i) {
    const TensorSlot& slot = recipe_->outputs[i];
    const Tensor got = Tensor::Make(slot.dtype, slot.shape, [&](void* to) {
      std::memcpy(to, whole[i].data(), whole[i].size());
    });
    EXPECT_LE(LargestDifference(got, (*expected)[i]), 1e-4) << "output " << i;
  }
  for (int64_t live = 1; live < kRows; ++live) {
    const std::vector<std::string> some = Replay(live, x);
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(some[i], whole[i].substr(0, some[i].size())) << live << " rows, output " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LiveRowsTest,
                         testing::Values(R"(graph {
  input %x: f32[n, 3, 12, 12]
  param %w: f32[6, 3, 3, 3] = p0
  param %b: f32[6] = p1
  %c: f32 = Conv(%x, %w, %b) {pads = [1, 1, 1, 1]}
  %r: f32 = Relu(%c)
  %m: f32, %at: i64 = MaxPool(%r) {kernel_shape = [2, 2], strides = [2, 2]}
  %p: f32 = GlobalAveragePool(%m)
  output %p
  output %at
})",
                                         R"(graph {
  input %x: f32[n, 6, 4, 5]
  param %w: f32[6, 3, 3, 3] = p0
  param %s: f32[6] = p1
  param %b: f32[6] = p2
  const %scales: f32[4] = {1.0, 1.0, 2.0, 2.0}
  const %first: i64[1] = {1}
  const %end: i64[1] = {7}
  const %axis: i64[1] = {2}
  %i: f32 = InstanceNormalization(%x, %s, %b)
  %big: f32 = Resize(%i, _, %scales) {mode = "linear"}
  %part: f32 = Slice(%big, %first, %end, %axis)
  %c: f32 = Conv(%part, %w) {group = 2}
  %a: f32 = AveragePool(%c) {kernel_shape = [2, 2]}
  %l: f32 = LogSoftmax(%a)
  %y: i64 = ArgMax(%l) {axis = 1}
  output %l
  output %y
})",
                                         R"(graph {
  input %x: f32[n, 3, 5, 5]
  param %w: f32[6, 3, 3, 3] = p0
  %c: f32 = Conv(%x, %w)
  %g: f32 = GlobalMaxPool(%c)
  output %g
})",
                                         kLarge));

// The values between the nodes of such a picture have room for one picture alone.
TEST_F(ReplayedRowsTest, LargePicturesRunOneAfterTheOther) {
  ASSERT_NO_FATAL_FAILURE(Compile(kLarge));
  std::vector<int64_t> launches(kRows, 0);
  for (const Launch& launch : recipe_->launches) ++launches[launch.row];
  EXPECT_GT(launches[1], 1);
  EXPECT_EQ(launches[1], launches[kRows - 1]);
  EXPECT_GE(launches[0], launches[1]);
  constexpr size_t kPicture = size_t{6} * 256 * 256 * sizeof(float);
  EXPECT_LT(recipe_->arena_bytes, (kRows + 2) * kPicture);
}

}  // namespace
}  // namespace reprise

// Kernels that take the number of live rows write no row after them.
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/graph/graph.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

class LiveRowsTest : public DeviceOfTier {};

TEST_P(LiveRowsTest, RowsWithoutARequestAreLeftAlone) {
  for (const char* text :
       {"input %x: f32[4, 9, 20]\nparam %w: f32[20, 50] = p0\n%y: ? = reprise.Linear(%x, "
        "%w)\noutput %y",
        "input %x: f32[4, 9, 20]\nparam %w: f32[20, 50] = p0\n%y: ? = reprise.Linear(%x, "
        "%w) {precision = \"int8\"}\noutput %y",
        "input %x: f32[4, 2, 9, 20]\ninput %w: f32[2, 20, 50]\n%y: ? = MatMul(%x, %w)\noutput %y",
        "input %x: u8[4, 9, 20]\nparam %w: i8[20, 50] = p0\ninput %s: f32[4, 9, 1]\n"
        "input %t: f32[50]\n%y: ? = reprise.IntegerLinear(%x, %w, %s, %t)\noutput %y",
        "input %x: u8[4, 9, 20]\ninput %w: i8[20, 50]\ninput %s: f32[]\ninput %t: f32[50]\n"
        "%y: ? = reprise.IntegerLinear(%x, %w, %s, %t)\noutput %y",
        "input %x: f32[4, 20, 96]\n%y: ? = reprise.Attention(%x) {num_heads = 4, packed_qkv = 1}"
        "\noutput %y",
        "input %x: f32[4, 5, 33]\nparam %g: f32[33] = p0\n%y: ? = LayerNormalization(%x, "
        "%g)\noutput %y",
        "param %t: f32[9, 40] = p0\ninput %i: i64[4, 7]\n%y: ? = reprise.EmbeddingSum(%t, "
        "%i)\noutput %y",
        "param %t: f32[9, 40] = p0\ninput %i: i64[4, 7]\n%y: ? = Gather(%t, %i)\noutput %y",
        "input %x: f32[4, 6, 9, 9]\nparam %w: f32[4, 3, 3, 3] = p0\nparam %b: f32[4] = p1\n"
        "%y: ? = Conv(%x, %w, %b) {group = 2}\noutput %y",
        "input %x: f32[4, 6, 9, 9]\nparam %w: f32[6, 1, 3, 3] = p0\ninput %r: f32[4, 6, 7, 7]\n"
        "%y: ? = reprise.Conv(%x, %w, _, %r) {group = 6}\noutput %y",
        "input %x: f32[4, 20, 6, 6]\nparam %w: f32[20, 1, 3, 3] = p0\n"
        "%y: ? = Conv(%x, %w) {group = 20}\noutput %y",
        "input %x: u8[4, 6, 9, 9]\nparam %w: i8[8, 6, 3, 3] = p0\ninput %s: f32[]\ninput %t: f32[]"
        "\n%y: ? = reprise.IntegerConv(%x, %w, %s, %t)\noutput %y",
        "input %x: f32[4, 6, 9, 9]\n%y: ? = AveragePool(%x) {kernel_shape = [3, 2]}\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = Tanh(%x)\noutput %y",
        "input %x: f32[4, 9, 20]\n%y: ? = Transpose(%x) {perm = [0, 2, 1]}\noutput %y",
        "input %x: f32[4, 9, 20, 3]\n%y: ? = Transpose(%x) {perm = [0, 3, 1, 2]}\noutput %y",
        "input %x: f32[4, 2, 20, 3]\n%y: ? = Transpose(%x) {perm = [0, 1, 3, 2]}\noutput %y",
        "input %x: u8[4, 9, 20, 3]\n%y: ? = Transpose(%x) {perm = [0, 3, 1, 2]}\noutput %y",
        "input %x: i64[4, 2, 5000]\n%y: ? = Transpose(%x) {perm = [0, 2, 1]}\noutput %y",
        "input %x: f32[4, 3, 90]\n%y: ? = Transpose(%x) {perm = [0, 2, 1]}\noutput %y",
        "input %x: f32[4, 3, 8]\ninput %z: f32[4, 1, 8]\n%y: ? = Mul(%x, %z)\noutput %y",
        "input %x: f32[4, 50, 3]\ninput %z: f32[3]\n%y: ? = Mul(%x, %z)\noutput %y",
        "input %c: bool[50, 3]\ninput %x: f32[4, 50, 3]\ninput %z: f32[4, 50, 1]\n%y: ? = "
        "Where(%c, "
        "%x, %z)\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %l: f32[] = {0.5}\n%y: ? = Clip(%x, %l)\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = LeakyRelu(%x) {alpha = 0.2}\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %e: f32[] = {2.0}\n%y: ? = Pow(%x, %e)\noutput %y",
        "input %x: i64[4, 3, 8]\n%y: ? = Cast(%x) {to = 1}\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = Softmax(%x)\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = LogSoftmax(%x)\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = Softmax(%x) {axis = 1}\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = ArgMax(%x) {axis = 1}\noutput %y",
        "input %x: f32[4, 3, 5, 5]\n%y: ? = Det(%x)\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = ArgMin(%x) {axis = 2}\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %a: i64[1] = {1}\n%y: ? = ReduceMax(%x, %a)\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %a: i64[1] = {1}\n%y: ? = ReduceSum(%x, %a)\noutput %y",
        "input %x: f32[4, 3, 8]\ninput %z: f32[4, 3, 5]\n%y: ? = Concat(%x, %z) {axis = "
        "2}\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %b: i64[1] = {1}\nconst %e: i64[1] = {7}\nconst %a: "
        "i64[1] = {2}\n%y: ? = Slice(%x, %b, %e, %a)\noutput %y"}) {
    SCOPED_TRACE(text);
    NodeRun run(text);
    run.graph.value(run.node().outputs[0]).batch_rows = 4;
    const KernelOption option = device_.Options(run.graph, run.id).at(0);
    EXPECT_TRUE(option.takes_live_rows);
    const std::vector<double> expected = run.Reference()[0].ToDoubles();
    const Tensor result = run.RunOption(device_, option, 3, false, /*live_rows=*/3)[0];
    const std::vector<double> got = result.ToDoubles();
    const size_t live = got.size() / 4 * 3;
    for (size_t i = 0; i < live; ++i) ASSERT_NEAR(got[i], expected[i], 1e-4) << "element " << i;
    const auto* bytes = static_cast<const uint8_t*>(result.data());
    for (size_t i = live * DTypeSize(result.dtype()); i < result.bytes(); ++i) {
      ASSERT_EQ(bytes[i], 0x5a) << "byte " << i;
    }
  }
}

// All rows are cut into equal rounds; a launch of fewer rows may have longer ones.
TEST_P(LiveRowsTest, RoundedRowsStayInTheirScratchHoweverFewLive) {
  const CpuDevice device({.max_isa = GetParam(), .max_threads = 1});
  for (const char* text :
       {"input %x: f32[40, 10, 20]\nparam %w: f32[20, 50] = p0\n%y: ? = reprise.Linear(%x, "
        "%w) {precision = \"int8\"}\noutput %y",
        "input %x: f32[40, 10, 32]\nparam %w: f32[32, 50] = p0\n%y: ? = reprise.Linear(%x, "
        "%w) {precision = \"int8\", rounded_block = 32}\noutput %y"}) {
    for (const int64_t live_rows : {21, 25, 38}) {
      SCOPED_TRACE(absl::StrCat(live_rows, " live rows of ", text));
      NodeRun run(text);
      run.graph.value(run.node().outputs[0]).batch_rows = 40;
      const KernelOption option = device.Options(run.graph, run.id).at(0);
      const std::vector<double> expected = run.Reference()[0].ToDoubles();
      const std::vector<double> got =
          run.RunOption(device, option, 1, false, live_rows)[0].ToDoubles();
      for (size_t i = 0; i < got.size() / 40 * live_rows; ++i) {
        ASSERT_NEAR(got[i], expected[i], 1e-4) << "element " << i;
      }
    }
  }
}

TEST(LiveOfTest, SegmentsAreCountedByThemselves) {
  const Frame frame = {.live_rows = 5, .segments = 4, .live_segments = 3};
  EXPECT_EQ(cpu::LiveOf(4, 4, frame), 3);
  EXPECT_EQ(cpu::LiveOf(24, 4, frame), 18);
  EXPECT_EQ(cpu::LiveOf(16, 8, frame), 10);
  EXPECT_EQ(cpu::LiveOf(4, 4, {.live_rows = 5, .segments = 4}), 4) << "all of them";
  EXPECT_EQ(cpu::LiveOf(8, 8, {.segments = 4, .live_segments = 3}), 8);
}

INSTANTIATE_TEST_SUITE_P(Tiers, LiveRowsTest, testing::ValuesIn(cpu::EveryTier()), cpu::TierName);

}  // namespace
}  // namespace reprise

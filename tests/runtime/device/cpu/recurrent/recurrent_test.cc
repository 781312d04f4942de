// Recurrent layers however their steps are cut: in moves that all parts share, in groups of rows,
// whole.
#include "runtime/device/cpu/recurrent/recurrent.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

struct Layer {
  const char* op;
  int64_t gates, hidden, batch;
  const char* direction;
  bool lengths, linear = false;

  int64_t directions() const { return std::string(direction) == "bidirectional" ? 2 : 1; }
  // `results`: the outputs are the whole sequence, else the states alone.
  std::string Text(bool results) const {
    const int64_t d = directions(), width = gates * hidden;
    const bool cell = std::string(op) == "LSTM";
    std::string text =
        absl::StrCat("input %x: f32[6, ", batch, ", 9]\nparam %w: f32[", d, ", ", width,
                     ", 9] = p0\nparam %r: f32[", d, ", ", width, ", ", hidden,
                     "] = p1\nparam %b: f32[", d, ", ", 2 * width, "] = p2\n");
    if (lengths) absl::StrAppend(&text, "input %l: i32[", batch, "]\n");
    absl::StrAppend(&text, "input %h0: f32[", d, ", ", batch, ", ", hidden, "]\n");
    absl::StrAppend(&text, results ? "%y: ?" : "_", ", %h: ?", cell ? ", %c: ?" : "", " = ", op,
                    "(%x, %w, %r, %b, ", lengths ? "%l" : "_", ", %h0) {hidden_size = ", hidden,
                    ", direction = \"", direction, "\"", linear ? ", linear_before_reset = 1" : "",
                    "}\n", results ? "output %y\n" : "", "output %h\n", cell ? "output %c\n" : "");
    return text;
  }
};

constexpr Layer kLayers[] = {
    {"LSTM", 4, 130, 1, "forward", false},      {"LSTM", 4, 130, 3, "reverse", true},
    {"LSTM", 4, 140, 9, "bidirectional", true}, {"LSTM", 4, 24, 11, "forward", false},
    {"GRU", 3, 150, 1, "forward", false},       {"GRU", 3, 150, 2, "bidirectional", true},
    {"GRU", 3, 150, 1, "reverse", false, true}, {"GRU", 3, 150, 9, "bidirectional", true, true},
    {"RNN", 1, 260, 1, "forward", false},       {"RNN", 1, 260, 9, "bidirectional", true},
};

// Weights of so many elements that a small difference does not grow from step to step.
Tensor Small(const Tensor& weights) {
  const auto from = weights.span<float>();
  std::vector<float> to(from.begin(), from.end());
  for (float& weight : to) weight *= 0.05f;
  return Tensor::FromVector(DType::kFloat32, weights.shape(), to);
}

class RecurrentTest : public DeviceOfTier {};

TEST_P(RecurrentTest, AnyCutOfTheStepsGivesTheSameBits) {
  const CpuDevice alone({.max_isa = GetParam(), .max_threads = 1});
  const CpuDevice many({.max_isa = GetParam(), .max_threads = 16});
  bool any_phased = false;
  for (const Layer& layer : kLayers) {
    for (const bool results : {true, false}) {
      const std::string text = layer.Text(results);
      SCOPED_TRACE(text);
      NodeRun run(text);
      run.inputs[2] = Small(*run.inputs[2]);
      if (layer.lengths) {
        std::vector<int32_t> lengths = {6, 0, 4};
        lengths.resize(static_cast<size_t>(layer.batch), 3);
        run.inputs[4] = Tensor::FromVector(DType::kInt32, {layer.batch}, lengths);
      }
      const std::vector<Tensor> reference = run.Reference();
      std::vector<Tensor> first;
      for (const CpuDevice* device : {&alone, &many}) {
        const std::vector<KernelOption> options = device->Options(run.graph, run.id);
        ASSERT_EQ(options.size(), 1u);
        const auto bound = device->Bind(run.graph, run.id, options[0]);
        ASSERT_TRUE(bound.ok()) << bound.status();
        const int moves = layer.gates == 3 && !layer.linear ? 4 : 2;
        if (device == &alone) {
          EXPECT_EQ(bound->phases, 3);
        } else if (bound->phases > 3) {
          EXPECT_EQ(bound->phases, 2 + 6 * moves);
          any_phased = true;
        }
        for (const int parts : {1, 2, 3, 7}) {
          const std::vector<Tensor> got = run.RunOption(*device, options[0], parts);
          if (first.empty()) first = got;
          for (size_t i = 0; i < got.size(); ++i) {
            if (run.node().outputs[i] == kNone) continue;
            ExpectClose(got[i], reference[i]);
            EXPECT_EQ(got[i], first[i]) << parts << " parts, output " << i;
          }
        }
      }
      EXPECT_TRUE(run.errors.errors.empty());
    }
  }
  EXPECT_TRUE(any_phased);
}

INSTANTIATE_TEST_SUITE_P(Tiers, RecurrentTest, testing::ValuesIn(cpu::TestedTiers()),
                         cpu::TierName);

}  // namespace
}  // namespace reprise

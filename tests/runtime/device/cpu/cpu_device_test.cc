#include "runtime/device/cpu/cpu_device.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kLinear =
    "input %x: f32[2, 9, 20]\nparam %w: f32[20, 50] = p0\n%y: ? = reprise.Linear(%x, %w)\noutput "
    "%y";

class CpuDeviceTest : public DeviceOfTier {};

TEST_P(CpuDeviceTest, NodesWithoutFastKernelsHaveNoOptions) {
  for (const char* text :
       {"input %x: i32[4, 3]\nparam %w: i32[3, 100] = p0\n%y: ? = MatMul(%x, %w)\noutput %y",
        "input %x: f64[4, 3, 17]\n%y: ? = Softmax(%x)\noutput %y",
        "input %x: f32[4, 3, 17]\nconst %a: i64[2] = {0, 2}\n%y: ? = ReduceSum(%x, %a)\noutput %y",
        "input %x: f32[1, 2, 4, 4, 4]\n%y: ? = MaxPool(%x) {kernel_shape = [2, 2, 2]}\noutput %y",
        "input %x: f32[4]\n%y: ? = Hardmax(%x)\noutput %y"}) {
    NodeRun run(text);
    EXPECT_THAT(device_.Options(run.graph, run.id), IsEmpty()) << text;
  }
}

// A length of 0, or a probe shorter than the part a model cuts off, makes empty values.
TEST_P(CpuDeviceTest, NothingIsPlannedAndRunLikeSomething) {
  for (const char* text :
       {"input %x: f32[1, 24, 0]\ninput %z: f32[1, 24, 1]\n%y: ? = Sub(%x, %z)\noutput %y",
        "input %x: f32[0, 24, 8]\ninput %z: f32[24, 1]\n%y: ? = Mul(%x, %z)\noutput %y",
        "input %x: f32[3, 0, 8]\ninput %z: f32[1, 1, 8]\n%y: ? = Add(%x, %z)\noutput %y",
        "input %c: bool[9, 9, 0]\ninput %x: f32[9, 1, 1]\ninput %z: f32[9, 0]\n%y: ? = Where(%c, "
        "%x, %z)\noutput %y",
        "input %x: f32[9, 12, 0]\n%y: ? = Transpose(%x) {perm = [0, 2, 1]}\noutput %y",
        "input %x: f32[4, 0]\n%y: ? = Softmax(%x)\noutput %y",
        "input %x: f32[0, 20]\nparam %w: f32[20, 50] = p0\n%y: ? = reprise.Linear(%x, %w)\noutput "
        "%y",
        "input %x: f32[0, 16, 4, 4]\nparam %w: f32[16, 1, 3, 3] = p0\n%y: ? = reprise.Conv(%x, %w) "
        "{layout = \"first\", group = 16}\noutput %y",
        "input %x: f32[0, 4, 4, 16]\nparam %w: f32[16, 1, 3, 3] = p0\n%y: ? = reprise.Conv(%x, %w) "
        "{layout = \"last\", group = 16}\noutput %y"}) {
    NodeRun run(text);
    for (const KernelOption& option : device_.Options(run.graph, run.id)) {
      EXPECT_EQ(run.RunOption(device_, option, 2)[0].num_elements(), 0) << text;
    }
  }
}

TEST_P(CpuDeviceTest, WeightsArePackedOnceForTheDevicesOwnTier) {
  const CpuDevice device({.max_isa = GetParam(), .gemm_provider = GemmProvider::kOwn});
  NodeRun run(kLinear);
  const std::vector<KernelOption> options = device.Options(run.graph, run.id);
  ASSERT_EQ(options[0].prepare.size(), 1u);
  const PrepareStep& step = options[0].prepare[0];
  Attributes other = step.attributes;
  other.Set("panel", other.Int("panel", 0) + 1);
  const std::optional<Tensor> weights[] = {run.inputs[1]};
  EXPECT_TRUE(device.Prepare(step.op, step.attributes, weights).ok());
  EXPECT_THAT(device.Prepare(step.op, other, weights).status().ToString(), HasSubstr("columns"));
}

TEST_P(CpuDeviceTest, ScratchIsThatOfTheThreadsOfAReplayAndMoreGiveTheSameAnswer) {
  const CpuDevice one(
      {.max_isa = GetParam(), .gemm_provider = GemmProvider::kOwn, .max_threads = 1});
  const CpuDevice three(
      {.max_isa = GetParam(), .gemm_provider = GemmProvider::kOwn, .max_threads = 3});
  for (const char* text :
       {"input %x: f32[4, 150, 64]\ninput %w: f32[4, 64, 150]\n%y: ? = MatMul(%x, %w)\noutput %y",
        "input %x: f32[150, 300]\nparam %w: f32[300, 70] = p0\n%y: ? = reprise.Linear(%x, "
        "%w)\noutput %y"}) {
    NodeRun run(text);
    const std::vector<KernelOption> options = one.Options(run.graph, run.id);
    const std::vector<KernelOption> wider = three.Options(run.graph, run.id);
    ASSERT_EQ(options.size(), wider.size());
    for (size_t i = 0; i < options.size(); ++i) {
      EXPECT_EQ(3 * options[i].workspace_bytes, wider[i].workspace_bytes) << options[i].kernel;
      const std::vector<Tensor> alone = run.RunOption(one, options[i], 1);
      EXPECT_EQ(run.RunOption(one, options[i], 5)[0], alone[0]) << options[i].kernel;
    }
  }
}

TEST_P(CpuDeviceTest, UnknownKernelIsRefusedByName) {
  NodeRun run(kLinear);
  KernelOption option;
  option.kernel = "no_such_kernel";
  EXPECT_THAT(device_.Bind(run.graph, run.id, option).status().ToString(),
              HasSubstr("no_such_kernel"));
}

TEST(CpuDeviceFingerprintTest, DiffersByTier) {
  std::set<std::string> fingerprints;
  for (Isa isa : cpu::TestedTiers()) fingerprints.insert(CpuDevice(isa).fingerprint());
  EXPECT_EQ(fingerprints.size(), cpu::TestedTiers().size());
}

INSTANTIATE_TEST_SUITE_P(Tiers, CpuDeviceTest, testing::ValuesIn(cpu::EveryTier()), cpu::TierName);

}  // namespace
}  // namespace reprise

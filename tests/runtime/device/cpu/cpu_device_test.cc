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

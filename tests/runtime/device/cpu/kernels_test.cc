// Every kernel against its reference, for nodes of every kind.
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/nodes/elements.h"
#include "tests/runtime/device/cpu/nodes/movement.h"
#include "tests/runtime/device/cpu/nodes/products.h"
#include "tests/runtime/device/cpu/nodes/rows.h"
#include "tests/runtime/device/cpu/nodes/segments.h"
#include "tests/runtime/device/cpu/nodes/windows.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

using ::testing::IsEmpty;

class KernelsTest : public DeviceOfTier {};

// Lists nodes; each runs on every tier, in several partitions, and in place where that is offered.
std::vector<const char*> EveryNode() {
  std::vector<const char*> all;
  for (const absl::Span<const char* const> nodes :
       std::initializer_list<absl::Span<const char* const>>{kProducts, kWindows, kRows, kElements,
                                                            kMovement, kSegments}) {
    all.insert(all.end(), nodes.begin(), nodes.end());
  }
  return all;
}

TEST_P(KernelsTest, EveryKernelAgreesWithItsReference) {
  for (const char* text : EveryNode()) {
    SCOPED_TRACE(text);
    NodeRun run(text, 7);
    const std::vector<Tensor> expected = run.Reference();
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    for (const KernelOption& option : options) {
      SCOPED_TRACE(option.kernel);
      EXPECT_GE(option.estimate_ns, 0);
      for (int parts : {1, 2, 3, 7, 40}) {
        for (bool in_place : {false, true}) {
          SCOPED_TRACE(testing::Message() << parts << " parts" << (in_place ? ", in place" : ""));
          const std::vector<Tensor> got = run.RunOption(device_, option, parts, in_place);
          for (size_t i = 0; i < expected.size(); ++i) {
            const ValueId output = run.node().outputs[i];
            if (output != kNone && run.graph.IsOutput(output)) ExpectClose(got[i], expected[i]);
          }
          EXPECT_THAT(run.errors.errors, IsEmpty());
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// It touches the pages that later parts need: code, weights, memory.
TEST_P(KernelsTest, FirstPartOfManyHasWork) {
  for (const char* text : EveryNode()) {
    SCOPED_TRACE(text);
    NodeRun run(text, 7);
    for (const KernelOption& option : device_.Options(run.graph, run.id)) {
      SCOPED_TRACE(option.kernel);
      const Tensor result = run.RunOption(device_, option, 1024, /*in_place=*/false,
                                          /*live_rows=*/0, /*only_part=*/0)[0];
      const auto* bytes = static_cast<const uint8_t*>(result.data());
      const bool untouched =
          std::all_of(bytes, bytes + result.bytes(), [](uint8_t byte) { return byte == 0x5a; });
      EXPECT_TRUE(result.bytes() == 0 || !untouched);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, KernelsTest, testing::ValuesIn(cpu::EveryTier()), cpu::TierName);

}  // namespace
}  // namespace reprise

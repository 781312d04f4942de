#include "runtime/device/cpu/machine_peak.h"

#include <gtest/gtest.h>

#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

TEST(RatesTest, EveryTierHasAYardstick) {
  for (const Isa isa : TestedTiers()) {
    const Roofline roofline = MeasureRoofline(isa, /*weight_bytes=*/1 << 20, /*other_bytes=*/0);
    for (const double rate : {roofline.gflops, roofline.gexps, roofline.gerfs,
                              roofline.weight_gbytes, roofline.other_gbytes}) {
      EXPECT_GT(rate, 0.001) << IsaName(isa);
      EXPECT_LT(rate, 1e5) << IsaName(isa);
    }
  }
}

}  // namespace
}  // namespace reprise::cpu

#include "runtime/base/cpu_info.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace reprise {
namespace {

TEST(CpuInfoTest, IsaNamesParseBack) {
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx2Vnni, Isa::kAvx512, Isa::kAvx512Vnni,
                  Isa::kAvx512Bf16, Isa::kAmx}) {
    EXPECT_EQ(ParseIsa(IsaName(isa)), isa);
  }
  EXPECT_EQ(ParseIsa("avx1024"), std::nullopt);
  EXPECT_EQ(ParseIsa(""), std::nullopt);
}

TEST(CpuInfoTest, TiersIncludeThoseBefore) {
  __builtin_cpu_init();
  EXPECT_EQ(DetectIsa() >= Isa::kAvx2,
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  if (DetectIsa() >= Isa::kAvx512) {
    EXPECT_TRUE(__builtin_cpu_supports("avx512f"));
  }
  EXPECT_EQ(DetectIsa(), DetectIsa());
}

TEST(CpuInfoTest, ACapIsKeptAndOnlyByteProductsOfAvx2MayBeMissingBelowIt) {
  for (int isa = 0; isa <= static_cast<int>(DetectIsa()); ++isa) {
    const Isa cap = static_cast<Isa>(isa);
    if (UsableIsa(cap) == cap) continue;
    EXPECT_EQ(cap, Isa::kAvx2Vnni);
    EXPECT_EQ(UsableIsa(cap), Isa::kAvx2);
  }
  EXPECT_EQ(UsableIsa(kHighestIsa), DetectIsa());
}

TEST(CpuInfoTest, ModelNameIsStable) {
  EXPECT_NE(CpuModelName(), "");
  EXPECT_EQ(CpuModelName(), CpuModelName());
}

TEST(CpuInfoTest, AvailableCpusFollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(AvailableCpus(), 1);
  EXPECT_LE(AvailableCpus(), CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(AvailableCpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

}  // namespace
}  // namespace reprise

#include "runtime/base/cpu/cpu_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <string>

#include "runtime/base/cpu/compiled_tiers.h"

namespace reprise {
namespace {

using testing::HasSubstr;

TEST(CpuInfoTest, IsaNamesParseBack) {
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx2Vnni, Isa::kAvx512, Isa::kAvx512Vnni,
                  Isa::kAvx512Bf16, Isa::kAmx}) {
    EXPECT_TRUE(ParseIsa(IsaName(isa))->Covers(isa));
    EXPECT_EQ(IsaName(*ParseIsa(IsaName(isa))), IsaName(isa));
  }
  EXPECT_EQ(ParseIsa("avx1024"), std::nullopt);
  EXPECT_EQ(ParseIsa(""), std::nullopt);
}

TEST(CpuInfoTest, FeaturesAreThoseOfTheCpu) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  EXPECT_EQ(DetectIsa().Has(CpuFeature::kAvx2),
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  if (DetectIsa().Has(CpuFeature::kAvx512)) {
    EXPECT_TRUE(__builtin_cpu_supports("avx512f"));
  }
#else
  EXPECT_EQ(DetectIsa(), Isa::kBaseline);
#endif
  EXPECT_EQ(DetectIsa(), DetectIsa());
}

TEST(CpuInfoTest, ACapTakesFeaturesAway) {
  for (const NamedIsa& named : kIsas) {
    const Isa usable = UsableIsa(*ParseIsa(named.name));
    EXPECT_TRUE(DetectIsa().Covers(usable));
    EXPECT_EQ(usable.Within(*ParseIsa(named.name)), usable);
    if (DetectIsa().Covers(named.isa) && HasCodeFor(named.isa)) {
      EXPECT_TRUE(usable.Covers(named.isa)) << named.name;
    }
  }
  EXPECT_EQ(UsableIsa(kEveryIsa), WithinCompiled(DetectIsa()));
  EXPECT_EQ(UsableIsa(Isa::kBaseline), Isa::kBaseline);
}

TEST(CpuInfoTest, ATierWithoutCodeIsRefusedByNameAndNeverUsed) {
  EXPECT_EQ(WhyNotIsa("baseline"), "");
  for (const NamedIsa& named : kIsas) {
    EXPECT_EQ(WhyNotIsa(named.name).empty(), HasCodeFor(named.isa)) << named.name;
    if (HasCodeFor(named.isa)) {
      EXPECT_EQ(WithinCompiled(named.isa), named.isa);
      continue;
    }
    EXPECT_THAT(WhyNotIsa(named.name), HasSubstr("REPRISE_TIERS=native"));
    EXPECT_THAT(WhyNotIsa(named.name), HasSubstr(std::string(named.name)));
    EXPECT_TRUE(HasCodeFor(WithinCompiled(named.isa)));
  }
}

// A CPU may have products of bytes for narrow vectors and no wide ones, or the other way round.
TEST(CpuInfoTest, SetsNeedNotFollowOneAnother) {
  EXPECT_FALSE(Isa::kAvx512Vnni.Covers(Isa::kAvx2Vnni));
  EXPECT_TRUE(Isa::kAmx.Covers(Isa::kAvx512Vnni));
  EXPECT_EQ(Isa::kAvx2Vnni.Within(*ParseIsa("avx512")), Isa::kAvx2Vnni);
  EXPECT_EQ(FloatTier(Isa::kAmx), Isa::kAvx512);
  EXPECT_EQ(FloatTier(Isa::kAvx2Vnni), Isa::kAvx2);
  EXPECT_EQ(ByteTier(kEveryIsa), Isa::kAvx512Vnni);
  EXPECT_EQ(ByteTier(Isa::kAvx2Vnni), Isa::kAvx2Vnni);
  EXPECT_EQ(IsaName(kEveryIsa), "amx");
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

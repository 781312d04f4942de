#include "runtime/device/cpu/gemm/foreign_blas.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class ForeignBlasTest : public testing::TestWithParam<Isa> {};

TEST_P(ForeignBlasTest, LoadsTheKernelsOfTheTier) {
  const auto blas = ForeignBlas::Load(GetParam());
  ASSERT_TRUE(blas.ok()) << blas.status();
  if (GetParam().Covers(Isa::kAvx512)) {
    EXPECT_EQ((*blas)->core(), "SkylakeX");
  }
  if (GetParam() == Isa::kAvx2) {
    EXPECT_EQ((*blas)->core(), "Haswell");
  }
  // One that is capped gets the lowest that the library has.
  if (GetParam() == Isa::kBaseline && DetectIsa() != Isa::kBaseline) {
    EXPECT_EQ((*blas)->core(), "Prescott");
  }
  EXPECT_THAT((*blas)->version(), HasSubstr("."));
}

INSTANTIATE_TEST_SUITE_P(Tiers, ForeignBlasTest, testing::ValuesIn(TestedTiers()), TierName);

TEST(ForeignBlasLoadTest, EnvironmentIsLeftAsItWas) {
  setenv("OPENBLAS_CORETYPE", "Nehalem", 1);
  unsetenv("OPENBLAS_NUM_THREADS");
  const auto blas = ForeignBlas::Load(DetectIsa());
  ASSERT_TRUE(blas.ok()) << blas.status();
  EXPECT_STREQ(std::getenv("OPENBLAS_CORETYPE"), "Nehalem");
  EXPECT_EQ(std::getenv("OPENBLAS_NUM_THREADS"), nullptr);
  unsetenv("OPENBLAS_CORETYPE");
  if (DetectIsa().Covers(Isa::kAvx2)) {
    EXPECT_NE((*blas)->core(), "Nehalem");
  }
}

TEST(ForeignBlasLoadTest, LibraryAboveTheCapIsRefused) {
  if (DetectIsa() == Isa::kBaseline) return;  // There is nothing above the cap here.
  const auto first = ForeignBlas::Load(DetectIsa());
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = ForeignBlas::Load(Isa::kBaseline);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.status().ToString(), HasSubstr((*first)->core()));
  EXPECT_THAT(second.status().ToString(), HasSubstr("Prescott"));
}

TEST(ForeignBlasLoadTest, LibraryBelowTheCapIsShared) {
  const auto first = ForeignBlas::Load(Isa::kBaseline);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = ForeignBlas::Load(DetectIsa());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->core(), (*first)->core());
}

TEST(ForeignBlasMultiplyTest, BetaZeroReadsNothingAndAnEmptySumIsZero) {
  const auto blas = ForeignBlas::Load(DetectIsa());
  ASSERT_TRUE(blas.ok()) << blas.status();
  const std::vector<double> a(12, 2), b(20, 3);
  std::vector<double> c(15, NAN);
  (*blas)->Multiply(BlasProduct<double>{.m = 3,
                                        .n = 5,
                                        .k = 4,
                                        .a = a.data(),
                                        .lda = 4,
                                        .b = b.data(),
                                        .ldb = 5,
                                        .c = c.data(),
                                        .ldc = 5});
  EXPECT_THAT(c, Each(24));
  c.assign(15, NAN);
  (*blas)->Multiply(BlasProduct<double>{
      .m = 3, .n = 5, .k = 0, .a = a.data(), .b = b.data(), .ldb = 5, .c = c.data(), .ldc = 5});
  EXPECT_THAT(c, Each(0));
}

TEST(ForeignBlasMultiplyTest, ThreadsDoNotDisturbEachOther) {
  const auto blas = ForeignBlas::Load(DetectIsa());
  ASSERT_TRUE(blas.ok()) << blas.status();
  constexpr int64_t kSize = 96;
  const std::vector<float> ones(kSize * kSize, 1);
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(8, std::vector<float>(kSize * kSize));
  for (size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        (*blas)->Multiply(BlasProduct<float>{.m = kSize,
                                             .n = kSize,
                                             .k = kSize,
                                             .a = ones.data(),
                                             .lda = kSize,
                                             .b = ones.data(),
                                             .ldb = kSize,
                                             .c = results[t].data(),
                                             .ldc = kSize,
                                             .alpha = static_cast<float>(t)});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < results.size(); ++t) EXPECT_THAT(results[t], Each(96.0f * t));
}

}  // namespace
}  // namespace reprise::cpu

#include "runtime/device/cpu/gemm/foreign_blas.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr int64_t kMegabyte = int64_t{1} << 20;

// Lets this process take `bytes` more addresses.
void LimitAddresses(int64_t bytes) {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit limit = {.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + bytes),
                        .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

// Ends the process with 0 if each of `count` threads, all at once, gets right products.
void MultiplyAtOnce(const ForeignBlas& blas, size_t count) {
  constexpr int64_t kSize = 300;  // too large for kernels that work without a buffer
  const std::vector<double> ones(kSize * kSize, 1);
  std::vector<std::vector<double>> results(count, std::vector<double>(kSize * kSize));
  std::vector<std::thread> threads;
  for (std::vector<double>& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        blas.Multiply(BlasProduct<double>{.m = kSize,
                                          .n = kSize,
                                          .k = kSize,
                                          .a = ones.data(),
                                          .lda = kSize,
                                          .b = ones.data(),
                                          .ldb = kSize,
                                          .c = result.data(),
                                          .ldc = kSize});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const bool right = std::all_of(results.begin(), results.end(), [](const auto& result) {
    return std::all_of(result.begin(), result.end(), [](double x) { return x == kSize; });
  });
  _exit(right ? 0 : 1);
}

// Each in a process of its own, which SIGALRM ends if a call never does.
class ForeignBlasAddressesTest : public testing::Test {
 protected:
  ForeignBlasAddressesTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ForeignBlasAddressesTest, WithoutRoomForABufferItIsLeftOutByName) {
  const auto load = [](int64_t megabytes) {
    LimitAddresses(megabytes * kMegabyte);
    const auto blas = ForeignBlas::Load(DetectIsa());
    std::cerr << blas.status();
    _exit(absl::IsResourceExhausted(blas.status()) ? 0 : 1);
  };
  for (const int64_t megabytes : {100, 300, 600, 1000}) {
    EXPECT_EXIT(load(megabytes), testing::ExitedWithCode(0),
                "OpenBLAS is left out: [0-9]+ bytes of addresses are left .ulimit -v., at least "
                "1073741824")
        << megabytes;
  }
}

TEST_F(ForeignBlasAddressesTest, LeavesAddressesToTheRest) {
  const auto load = [] {
    LimitAddresses(1200 * kMegabyte);
    const auto blas = ForeignBlas::Load(DetectIsa());
    void* rest = std::malloc(900 * kMegabyte);
    alarm(60);
    MultiplyAtOnce(**blas, rest == nullptr ? 0 : 1);
  };
  EXPECT_EXIT(load(), testing::ExitedWithCode(0), "");
}

TEST_F(ForeignBlasAddressesTest, CallsNeedNoAddressesHoweverManyThereAre) {
  const auto multiply = [] {
    const auto blas = ForeignBlas::Load(DetectIsa());
    LimitAddresses(100 * kMegabyte);
    alarm(60);
    MultiplyAtOnce(**blas, static_cast<size_t>(AvailableCpus()) + 6);
  };
  EXPECT_EXIT(multiply(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace reprise::cpu

#include "runtime/bucket/cost_model.h"

#include <gtest/gtest.h>

#include <random>

namespace reprise {
namespace {

TEST(ReplayCostTest, BeforeAnythingWasMeasuredTimeIsElements) {
  const ReplayCost cost;
  EXPECT_EQ(cost.RowNs(100) / cost.RowNs(50), 2);
  EXPECT_EQ(cost.Ns(2, 100) - cost.overhead_ns(), 4 * cost.RowNs(50));
  EXPECT_LT(cost.Ns(2, 100), 2 * cost.Ns(1, 100));  // one replay for two rows, even then
  EXPECT_GT(cost.CaptureNs(), 0);
}

TEST(ReplayCostTest, LearnsTheOverheadAndTheCurveThroughNoise) {
  ReplayCost cost;
  std::mt19937 random(4);
  const auto truth = [](int64_t rows, int64_t size) {
    return 200e3 + rows * (1e4 * size + 20.0 * size * size);
  };
  for (int i = 0; i < 4000; ++i) {
    const int64_t size = int64_t{16} << random() % 6;
    const int64_t rows = 1 + random() % 8;
    double ns = truth(rows, size) * (0.9 + 0.2 * (random() % 100) / 100.0);
    if (random() % 50 == 0) ns *= 20;  // the machine did something else
    cost.Record(rows, size, static_cast<int64_t>(ns));
  }
  for (int64_t size : {16, 64, 128, 512}) {
    for (int64_t rows : {1, 4, 8}) {
      EXPECT_NEAR(cost.Ns(rows, size) / truth(rows, size), 1, 0.2) << rows << " x " << size;
    }
  }
  // Between the sizes measured.
  EXPECT_NEAR(cost.Ns(4, 192) / truth(4, 192), 1, 0.2);
}

TEST(ReplayCostTest, LargerRowsAreNeverCheaper) {
  ReplayCost cost;
  std::mt19937 random(6);
  for (int i = 0; i < 500; ++i) {
    cost.Record(1 + random() % 3, 10 * (1 + random() % 20), 1000 + random() % 100000);
  }
  for (int64_t size = 1; size < 300; ++size) EXPECT_LE(cost.RowNs(size), cost.RowNs(size + 1));
}

TEST(ReplayCostTest, FollowsAMachineThatBecameSlower) {
  ReplayCost cost;
  for (int i = 0; i < 1000; ++i) cost.Record(1, 100, 1000000);
  for (int i = 0; i < 3000; ++i) cost.Record(1, 100, 2000000);
  EXPECT_NEAR(cost.Ns(1, 100), 2e6, 1e5);
}

TEST(ReplayCostTest, SizesThatAreNotUsedAnyMoreAreForgotten) {
  ReplayCost cost;
  // While the machine was busy a row more cost nothing: all of it was overhead.
  for (int i = 0; i < 2000; ++i) cost.Record(1 + i % 4, 64, 1000000);
  EXPECT_GT(cost.overhead_ns(), 5e5);
  for (int i = 0; i < 20000; ++i) cost.Record(1 + i % 4, 100, (1 + i % 4) * 500000);
  EXPECT_LT(cost.overhead_ns(), 2e4);
  ASSERT_EQ(cost.Curve().size(), 1u);
  EXPECT_EQ(cost.Curve()[0].row_size, 100);
}

TEST(ReplayCostTest, CapturesCostWhatTheyTookLately) {
  ReplayCost cost;
  for (int i = 0; i < 50; ++i) cost.RecordCapture(30000000);
  EXPECT_NEAR(cost.CaptureNs(), 3e7, 1);
}

}  // namespace
}  // namespace reprise

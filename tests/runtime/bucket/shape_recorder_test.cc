#include "runtime/bucket/shape_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace reprise {
namespace {

using ::testing::ElementsAre;

void Record(ShapeRecorder& recorder, std::vector<int64_t> sizes, int times,
            ShapeService service = ShapeService::kReady) {
  for (int i = 0; i < times; ++i) recorder.Record(sizes, service);
}

TEST(ShapeRecorderTest, ShapesAreCountedTheMostFrequentFirst) {
  ShapeRecorder recorder;
  Record(recorder, {1, 9}, 2);
  Record(recorder, {1, 7}, 3);
  Record(recorder, {1, 8}, 2, ShapeService::kOutside);
  Record(recorder, {1, 8}, 1, ShapeService::kLarger);
  const ShapeTable table = recorder.Snapshot();
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_THAT(table.rows[0].sizes, ElementsAre(1, 7));
  EXPECT_THAT(table.rows[1].sizes, ElementsAre(1, 8));
  EXPECT_EQ(table.rows[1].all.outside, 2);
  EXPECT_EQ(table.rows[1].all.larger, 1);
  EXPECT_EQ(table.all.requests, 8);
  EXPECT_EQ(table.all.fresh, 3);
  EXPECT_EQ(table.distinct, 3);
  EXPECT_EQ(table.unlisted(), 0);
}

TEST(ShapeRecorderTest, WindowsFollowEachOtherAndOldRequestsAreNotRecent) {
  ShapeRecorder recorder(/*window=*/10);
  Record(recorder, {1}, 10);
  Record(recorder, {2}, 10, ShapeService::kOutside);
  Record(recorder, {3}, 4);
  const ShapeTable table = recorder.Snapshot();
  EXPECT_EQ(table.before.requests, 10);
  EXPECT_EQ(table.last.outside, 10);
  EXPECT_EQ(table.recent.requests, 14);
  for (const ShapeRow& row : table.rows) {
    EXPECT_EQ(row.recent, row.sizes[0] == 1 ? 0 : row.all.requests) << row.sizes[0];
    EXPECT_EQ(row.before, row.sizes[0] == 1 ? 10 : 0) << row.sizes[0];
  }
  Record(recorder, {3}, 16);
  EXPECT_EQ(recorder.Snapshot().recent.outside, 0);
  EXPECT_EQ(recorder.Snapshot().all.requests, 40);
}

TEST(ShapeRecorderTest, MoreShapesThanTheTableHoldsAreStillCountedAndFrequentOnesStay) {
  ShapeRecorder recorder;
  constexpr int kMany = 3 * static_cast<int>(ShapeRecorder::kMaxShapes);
  for (int i = 0; i < kMany; ++i) {
    recorder.Record({i + 10}, ShapeService::kReady);
    recorder.Record({5}, ShapeService::kReady);
  }
  const ShapeTable table = recorder.Snapshot();
  EXPECT_LE(table.rows.size(), ShapeRecorder::kMaxShapes);
  EXPECT_THAT(table.rows[0].sizes, ElementsAre(5));
  EXPECT_EQ(table.rows[0].all.requests, kMany);
  EXPECT_EQ(table.distinct, kMany + 1);
  EXPECT_FALSE(table.distinct_more);
  EXPECT_EQ(table.unlisted(), kMany - (static_cast<int64_t>(table.rows.size()) - 1));
}

TEST(ShapeRecorderTest, BeyondItsMemoryDistinctShapesAreAMinimum) {
  ShapeRecorder recorder;
  for (size_t i = 0; i < ShapeRecorder::kMaxDistinct + 100; ++i) {
    recorder.Record({static_cast<int64_t>(i)}, ShapeService::kReady);
  }
  const ShapeTable table = recorder.Snapshot();
  EXPECT_TRUE(table.distinct_more);
  EXPECT_EQ(table.distinct, static_cast<int64_t>(ShapeRecorder::kMaxDistinct));
}

TEST(ShapeRecorderTest, ThreadsLoseNothing) {
  ShapeRecorder recorder(/*window=*/100);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) recorder.Record({i % 7}, ShapeService::kReady);
    });
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(recorder.Snapshot().unlisted(), 0);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(recorder.Snapshot().all.requests, 4000);
}

}  // namespace
}  // namespace reprise

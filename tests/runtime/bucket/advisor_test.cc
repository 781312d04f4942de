#include "runtime/bucket/advisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "runtime/bucket/solver.h"
#include "tests/testing/time_units.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;

const std::vector<int64_t> kStart = {16, 32, 64, 128, 256, 512};

// Time of a replay of one row on the machine of these tests.
int64_t ReplayNs(int64_t size) { return size * 50'000 + size * size * 40; }

// A server in miniature: requests one after another, each padded to its bucket, every look adopted.
class Server {
 public:
  explicit Server(AdvisorOptions options = {})
      : advisor_([&] {
          if (options.axes.empty()) options.axes = {{"sequence", {}, kStart}};
          sets_ = {options.axes[0].start};
          return options;
        }()) {}

  // `per_second` requests of these lengths.
  void Serve(int64_t count, const std::function<int64_t()>& length, double per_second = 100) {
    for (int64_t i = 0; i < count; ++i) {
      now_ns_ += static_cast<int64_t>(1e9 / per_second);
      const int64_t one = length();
      const auto holds = std::lower_bound(sets_[0].begin(), sets_[0].end(), one);
      const int64_t bucket = holds == sets_[0].end() ? one : *holds;
      valid += static_cast<double>(one);
      computed += static_cast<double>(bucket);
      advisor_.RecordRequest(std::vector<int64_t>{one}, 1, now_ns_);
      advisor_.RecordReplay(1, 1, bucket, replay_ns(bucket));
      if (!advisor_.due()) continue;
      if (const auto advice = advisor_.Consider(now_ns_)) {
        captures += static_cast<int64_t>(advice->captures.size());
        for (size_t c = 0; c < advice->captures.size(); ++c) {
          advisor_.RecordCapture(50 * kMs);
        }
        advisor_.Adopt(advice->boundaries);
        sets_ = advice->boundaries;
        ++changes;
        last_change = i;
      }
    }
  }

  const std::vector<int64_t>& boundaries() const { return sets_[0]; }
  BucketAdvisor& advisor() { return advisor_; }
  void Reset() { valid = computed = 0; }

  double valid = 0, computed = 0;
  int64_t changes = 0, captures = 0, last_change = -1;
  std::function<int64_t(int64_t size)> replay_ns = ReplayNs;

 private:
  BoundarySets sets_;
  BucketAdvisor advisor_;
  int64_t now_ns_ = kSecond;
};

class Lengths {
 public:
  explicit Lengths(uint64_t seed) : random_(seed) {}
  std::function<int64_t()> LogNormal(double median, double sigma, int64_t most) {
    return [this, median, sigma, most] {
      std::normal_distribution<double> normal;
      const double length = median * std::exp(sigma * normal(random_));
      return std::clamp<int64_t>(std::llround(length), 1, most);
    };
  }
  std::function<int64_t()> Lumps(std::vector<int64_t> lumps) {
    return [this, lumps] {
      return lumps[random_() % lumps.size()] - static_cast<int64_t>(random_() % 3);
    };
  }

 private:
  std::mt19937_64 random_;
};

TEST(BucketAdvisorTest, NothingMovesBeforeEnoughWasSeen) {
  Server server;
  Lengths lengths(1);
  server.Serve(500, lengths.Lumps({40, 70, 140}));
  EXPECT_EQ(server.changes, 0);
}

TEST(BucketAdvisorTest, LumpsGetTheirBucketsAndTheCeilingStays) {
  Server server;
  Lengths lengths(2);
  server.Serve(1000, lengths.Lumps({40, 70, 140, 300}));
  EXPECT_EQ(server.changes, 1);
  EXPECT_THAT(server.boundaries(), ::testing::IsSupersetOf({40, 70, 140, 300, 512}));
  EXPECT_EQ(server.boundaries().back(), 512);
}

// An hour at 100 requests a second for each of several kinds of traffic.
TEST(BucketAdvisorTest, StationaryTrafficChangesNothingInAnHourOnceItWasLearnt) {
  for (uint64_t seed : {4}) {
    for (int kind = 0; kind < 3; ++kind) {
      Server server;
      Lengths lengths(seed);
      const auto traffic = kind == 0   ? lengths.LogNormal(150, 0.38, 384)
                           : kind == 1 ? lengths.LogNormal(30, 0.9, 512)
                                       : lengths.Lumps({17, 33, 66, 130, 257, 400});
      server.Serve(2000, traffic);
      EXPECT_GE(server.changes, 1);
      EXPECT_LE(server.changes, 2);
      const int64_t learnt = server.changes;
      server.Serve(360'000, traffic);
      EXPECT_EQ(server.changes, learnt) << "kind " << kind << " seed " << seed;
    }
  }
}

TEST(BucketAdvisorTest, WhatWasLearntIsCloseToTheBestForTheRequestsThatFollow) {
  for (uint64_t seed : {5, 6, 7}) {
    Server server;
    Lengths lengths(seed);
    const auto traffic = lengths.LogNormal(150, 0.38, 384);
    server.Serve(1000, traffic);
    server.Reset();
    std::vector<int64_t> next;
    server.Serve(1000, [&] {
      next.push_back(traffic());
      return next.back();
    });
    const double best =
        SolveBoundaries(CountSizes(next), 8, [](int64_t size) { return double(size); }).cost;
    EXPECT_LE(server.computed, 1.05 * best);
  }
}

TEST(BucketAdvisorTest, RequestsNeverFallIntoMoreBucketsThanTheRuleSays) {
  for (const size_t most : {1, 2, 3, 8}) {
    for (const int64_t longest : {62, 64, 300, 512}) {
      Server server({.axes = {{"sequence", {.most = static_cast<int>(most)}, kStart}}});
      std::mt19937_64 random(most);
      server.Serve(2000, [&] { return 1 + static_cast<int64_t>(random() % longest); });
      if (most == 8) ASSERT_GE(server.changes, 1);
      if (server.changes == 0) continue;  // so few are no better than the six of the start
      EXPECT_EQ(server.boundaries().back(), 512);
      EXPECT_EQ(server.boundaries().size(), longest > 256 ? most : most + 1);
    }
  }
}

// Short replays on a machine that reads the weights for each of them: time says nothing of length.
TEST(BucketAdvisorTest, PaddingIsLittleAlsoWhereItCostsHardlyAnyTime) {
  for (uint64_t seed : {31, 32, 33}) {
    Server server;
    std::mt19937_64 noise(seed);
    server.replay_ns = [&](int64_t size) {
      return 2'000'000 + 2'000 * size + static_cast<int64_t>(noise() % 500'000);
    };
    Lengths lengths(seed);
    const auto traffic = lengths.LogNormal(14, 0.6, 64);
    server.Serve(1000, traffic);
    server.Reset();
    std::vector<int64_t> next;
    server.Serve(1000, [&] {
      next.push_back(traffic());
      return next.back();
    });
    const double best =
        SolveBoundaries(CountSizes(next), 8, [](int64_t size) { return double(size); }).cost;
    EXPECT_LE(server.computed, 1.05 * best) << "seed " << seed;
  }
}

TEST(BucketAdvisorTest, ADriftIsFollowedWithinAThousandRequests) {
  Server server;
  Lengths lengths(8);
  server.Serve(3000, lengths.Lumps({20, 45, 90}));
  const int64_t before = server.changes;
  server.Serve(1000, lengths.Lumps({33, 150, 270, 420}));
  EXPECT_GT(server.changes, before);
  EXPECT_LT(server.last_change, 700);
  server.Reset();
  server.Serve(1000, lengths.Lumps({33, 150, 270, 420}));
  EXPECT_LT(server.computed / server.valid, 1.03);
}

// The buckets in force when the thousandth request came stay as long as the traffic is the same.
TEST(BucketAdvisorTest, NothingChangesInTheSecondThousandOfStationaryTraffic) {
  for (uint64_t seed = 20; seed < 40; ++seed) {
    for (int kind = 0; kind < 3; ++kind) {
      Server server;
      Lengths lengths(seed);
      const auto traffic = kind == 0   ? lengths.LogNormal(150, 0.5, 512)
                           : kind == 1 ? lengths.LogNormal(14, 0.6, 64)
                                       : lengths.Lumps({18, 45, 77, 140, 270, 410});
      server.Serve(900, traffic);
      EXPECT_GE(server.changes, 1) << "kind " << kind << " seed " << seed;
      const int64_t learnt = server.changes;
      server.Serve(1100, traffic);
      EXPECT_EQ(server.changes, learnt) << "kind " << kind << " seed " << seed;
    }
  }
}

TEST(BucketAdvisorTest, ASlowDriftIsFollowedToo) {
  Server server;
  std::mt19937_64 random(21);
  int64_t at = 0;
  // One lump that moves from 60 to 360 in 15000 requests: never much from one moment to the next.
  const auto traffic = [&] { return 60 + at++ / 50 - static_cast<int64_t>(random() % 20); };
  server.Serve(1000, traffic);
  const int64_t learnt = server.changes;
  server.Reset();
  server.Serve(14'000, traffic);
  EXPECT_GE(server.changes, learnt + 3);
  EXPECT_LT(server.computed / server.valid, 1.3);
}

TEST(BucketAdvisorTest, AChangeThatIsNotPaidBackInTimeIsNotMade) {
  // One request in 100 s: a bucket saves too little to pay for a capture within ten minutes.
  Server slow;
  Lengths lengths(9);
  slow.Serve(3000, lengths.Lumps({40, 70, 140}), 0.01);
  EXPECT_EQ(slow.changes, 0);
  Server patient({.payback_ns = 100'000 * kSecond});
  patient.Serve(3000, lengths.Lumps({40, 70, 140}), 0.01);
  EXPECT_EQ(patient.changes, 1);
}

TEST(BucketAdvisorTest, LengthsThatTheBucketsFitAlreadyChangeNothing) {
  Server server;
  std::mt19937_64 random(10);
  server.Serve(5000, [&] { return kStart[random() % kStart.size()]; });
  EXPECT_EQ(server.changes, 0);
}

TEST(BucketAdvisorTest, AnExplicitAxisNeverMoves) {
  BoundaryRule fixed{.kind = BoundaryRule::Kind::kExplicit, .sizes = kStart};
  Server server({.axes = {{"sequence", fixed, kStart}}});
  Lengths lengths(11);
  server.Serve(2000, lengths.Lumps({40, 70}));
  EXPECT_EQ(server.changes, 0);
  EXPECT_FALSE(server.advisor().learns());
}

TEST(BucketAdvisorTest, PercentilesAreTakenWhenTheyWereAskedFor) {
  BoundaryRule rule{.kind = BoundaryRule::Kind::kPercentile, .most = 4};
  Server server({.axes = {{"sequence", rule, kStart}}});
  std::mt19937_64 random(12);
  server.Serve(600, [&] { return 1 + static_cast<int64_t>(random() % 100); });
  ASSERT_EQ(server.changes, 1);
  ASSERT_EQ(server.boundaries().size(), 5u);
  EXPECT_NEAR(server.boundaries()[1], 50, 6);
  EXPECT_EQ(server.boundaries().back(), 512);
}

TEST(BucketAdvisorTest, CapturesAreThoseThatTrafficNeedsTheMostWantedFirst) {
  BucketAdvisor advisor({.axes = {{"sequence", {}, kStart}}});
  for (int64_t i = 0; i < 600; ++i) {
    const int64_t length = i % 4 == 0 ? 200 : 40;
    advisor.RecordRequest(std::vector<int64_t>{length}, 1, i * 10 * kMs);
    advisor.RecordReplay(1, i % 3 == 0 ? 4 : 1, length == 40 ? 64 : 256, ReplayNs(length));
  }
  const auto advice = advisor.Consider(6 * kSecond);
  ASSERT_TRUE(advice.has_value());
  // 256 was there before, and spares a request of 201 the 512.
  EXPECT_THAT(advice->boundaries[0], ElementsAre(40, 200, 256, 512));
  ASSERT_EQ(advice->captures.size(), 4u);  // two new lengths, at up to 4 rows, and two that stay
  EXPECT_EQ(advice->captures[0].sizes[0], 40);
  EXPECT_EQ(advice->captures[0].batch, 4);
  EXPECT_EQ(advice->captures[1].sizes[0], 200);
  EXPECT_EQ(advice->captures[3].sizes[0], 512);
  EXPECT_EQ(advice->captures[3].batch, WantedRecipe::kMostRows);
  EXPECT_GT(advice->saving, 0.2);
  EXPECT_LT(advice->payback_s, 60);
}

TEST(BucketAdvisorTest, HeightsAndWidthsMoveTogether) {
  const std::vector<int64_t> start = {128, 256, 512, 1024};
  BucketAdvisor advisor({.axes = {{"height", {}, start}, {"width", {}, start}}});
  std::mt19937_64 random(13);
  for (int64_t i = 0; i < 600; ++i) {
    const int64_t less = static_cast<int64_t>(random() % 4);
    const bool tall = random() % 2 == 0;
    const std::vector<int64_t> sizes = {tall ? 640 - less : 300 - less, tall ? 480 : 400};
    advisor.RecordRequest(sizes, 1, i * 10 * kMs);
    advisor.RecordReplay(1, 1, tall ? 1024 * 512 : 512 * 512, tall ? 40 * kMs : 20 * kMs);
  }
  const auto advice = advisor.Consider(6 * kSecond);
  ASSERT_TRUE(advice.has_value());
  EXPECT_THAT(advice->boundaries[0], ::testing::IsSupersetOf({300, 640, 1024}));
  EXPECT_THAT(advice->boundaries[1], ElementsAre(400, 480, 1024));
}

TEST(BucketAdvisorTest, TheLargestBucketGrowsWhereRequestsAreLarger) {
  Server server({.axes = {{"frames", {}, kStart}},
                 .takes = [](size_t, int64_t size) { return size <= 4096; }});
  std::mt19937_64 random(14);
  const auto frames = [&] { return 700 + 100 * static_cast<int64_t>(random() % 20); };
  server.Serve(200, frames);
  // Long before boundaries are looked for.
  ASSERT_EQ(server.changes, 1);
  EXPECT_EQ(server.boundaries().back(), 4096);
  EXPECT_LE(server.boundaries().size(), 8u);
  server.Serve(1800, frames);
  server.Reset();
  server.Serve(1000, frames);
  EXPECT_LT(server.computed / server.valid, 1.1);
  EXPECT_LE(server.changes, 3);
}

TEST(BucketAdvisorTest, TheLargestBucketIsNoLargerThanTheModelTakes) {
  // Most requests need 1500 positions, which is no power of two.
  Server server({.axes = {{"frames", {}, kStart}},
                 .takes = [](size_t, int64_t size) { return size <= 1500; }});
  server.Serve(200, [i = 0]() mutable { return ++i % 2 == 0 ? 1400 : 60; });
  EXPECT_EQ(server.boundaries().back(), 1400);
  Server small({.axes = {{"frames", {}, kStart}},
                .takes = [](size_t, int64_t size) { return size <= 512; }});
  small.Serve(200, [i = 0]() mutable { return ++i % 2 == 0 ? 1400 : 60; });
  EXPECT_EQ(small.changes, 0);
}

TEST(BucketAdvisorTest, FewLargeRequestsRunExact) {
  Server server({.axes = {{"frames", {}, kStart}}, .takes = [](size_t, int64_t) { return true; }});
  std::mt19937_64 random(15);
  server.Serve(20'000, [&] { return random() % 200 == 0 ? 3000 : kStart[random() % 6]; });
  EXPECT_EQ(server.boundaries().back(), 512);
}

TEST(BucketAdvisorTest, WhatWasLearntIsKnownToTheNextOne) {
  Lengths lengths(3);
  Server server;
  server.Serve(4000, lengths.LogNormal(40, 0.5, 512));
  ASSERT_GT(server.changes, 0);
  const LearntBuckets learnt = server.advisor().Learnt();
  Server again;
  again.advisor().Restore(learnt);
  const BucketAdvisor::State state = again.advisor().Look();
  EXPECT_THAT(state.boundaries, ElementsAre(server.boundaries()));
  EXPECT_NEAR(state.current_waste, server.advisor().Look().current_waste, 0.01);
  const double row_ns = server.advisor().cost().RowNs(100);
  EXPECT_NEAR(again.advisor().cost().RowNs(100), row_ns, 1e-4 * row_ns);
}

TEST(BucketAdvisorTest, BoundariesLearntUnderOtherRulesAreNotTakenOver) {
  Lengths lengths(3);
  Server server;
  server.Serve(4000, lengths.LogNormal(40, 0.5, 512));
  LearntBuckets learnt = server.advisor().Learnt();
  const std::vector<int64_t> shorter = {16, 32, 256};
  Server other({.axes = {{"sequence", {}, shorter}}});
  other.advisor().Restore(learnt);
  EXPECT_THAT(other.advisor().Look().boundaries, ElementsAre(shorter));
  // Nor are some that cannot have been solved for.
  for (const std::vector<int64_t>& bad : {std::vector<int64_t>{}, {32, 16, 512}, {0, 512}, {16}}) {
    learnt.boundaries = {bad};
    Server same;
    same.advisor().Restore(learnt);
    EXPECT_THAT(same.advisor().Look().boundaries, ElementsAre(kStart));
  }
}

}  // namespace
}  // namespace reprise

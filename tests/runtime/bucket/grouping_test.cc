#include "runtime/bucket/grouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// Returns a machine on which a replay takes `overhead` and `slope` a token of a row.
ReplayCost Machine(double overhead, double slope) {
  ReplayCost cost;
  for (int i = 0; i < 400; ++i) {
    for (const int64_t size : {16, 32, 64, 128, 256, 512}) {
      const int64_t rows = 1 + i % 8;
      cost.Record(rows, size,
                  static_cast<int64_t>(overhead + slope * static_cast<double>(rows * size)));
    }
  }
  return cost;
}

const GroupingLimits kLimits = {
    [](absl::Span<const int64_t> sizes) { return std::clamp<int64_t>(4096 / sizes[0], 1, 32); }};

// The same, where sharing may pad little.
const GroupingLimits kLittlePadding = {.most_rows = kLimits.most_rows,
                                       .most_padding = kMostSharedPadding};

std::vector<WaitingRequest> Requests(std::vector<int64_t> lengths) {
  std::vector<WaitingRequest> waiting;
  for (const int64_t length : lengths) waiting.push_back({{length}, 1});
  return waiting;
}

TEST(GroupingTest, RequestsOfOneSizeShareAReplay) {
  const Grouping grouping = GroupByCost(Requests({64, 64, 64}), Machine(100'000, 1000), kLimits);
  EXPECT_THAT(grouping.groups, ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(GroupingTest, PaddingIsPaidOnlyWhereAReplayOfItsOwnCostsMore) {
  // Padding 16 to 512 costs 496 us of tokens.
  const auto waiting = Requests({16, 512, 16});
  EXPECT_THAT(GroupByCost(waiting, Machine(20'000, 1000), kLimits).groups,
              UnorderedElementsAre(ElementsAre(0, 2), ElementsAre(1)));
  // Where a replay costs 200 times a token of it, 16 and 128 go together, and 512 does not.
  EXPECT_THAT(GroupByCost(Requests({16, 512, 128}), Machine(200'000, 1000), kLimits).groups,
              UnorderedElementsAre(ElementsAre(0, 2), ElementsAre(1)));
}

TEST(GroupingTest, RowsBeyondTheLimitGoIntoAnotherReplay) {
  const Grouping grouping = GroupByCost(Requests(std::vector<int64_t>(20, 512)),
                                        Machine(100'000, 1000), kLimits);  // 8 rows of 512
  EXPECT_EQ(grouping.groups.size(), 3u);
  for (const auto& group : grouping.groups) EXPECT_LE(group.size(), 8u);
}

TEST(GroupingTest, RequestWithMoreRowsThanFitIsAlone) {
  const std::vector<WaitingRequest> waiting = {{{512}, 20}, {{512}, 1}};
  EXPECT_EQ(GroupByCost(waiting, Machine(100'000, 1000), kLimits).groups.size(), 2u);
}

TEST(GroupingTest, RequestsOfOtherBucketsShareAReplayThatTheyPadLittle) {
  // A replay of its own would cost 200 times a token; 16 rows of 64 and one of 48 pad 1.5%.
  std::vector<int64_t> lengths(16, 64);
  lengths.push_back(48);
  EXPECT_EQ(GroupByCost(Requests(lengths), Machine(200'000, 1000), kLittlePadding).groups.size(),
            1u);
  EXPECT_EQ(FirstFit(Requests(lengths), Machine(200'000, 1000), kLittlePadding).groups.size(), 1u);
  lengths.push_back(16);
  EXPECT_EQ(GroupByCost(Requests(lengths), Machine(200'000, 1000), kLittlePadding).groups.size(),
            2u);
}

// Elements of all groups together.
double Computed(absl::Span<const WaitingRequest> waiting, const Grouping& grouping) {
  double computed = 0;
  for (const auto& group : grouping.groups) {
    int64_t rows = 0, size = 0;
    for (const size_t i : group) {
      rows += waiting[i].rows;
      size = std::max(size, waiting[i].sizes[0]);
    }
    computed += static_cast<double>(rows * size);
  }
  return computed;
}

TEST(GroupingPropertyTest, SharingNeverPadsMoreThanTheLimit) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<WaitingRequest> waiting(1 + random() % 40);
    double alone = 0;
    for (WaitingRequest& one : waiting) {
      one = {{static_cast<int64_t>(8 + random() % 60)}, static_cast<int64_t>(1 + random() % 3)};
      alone += static_cast<double>(one.rows * one.sizes[0]);
    }
    const ReplayCost cost = Machine(static_cast<double>(random() % 2'000'000), 1000);
    EXPECT_LE(Computed(waiting, GroupByCost(waiting, cost, kLittlePadding)),
              alone / (1 - kMostSharedPadding) * (1 + 1e-9));
    EXPECT_LE(Computed(waiting, FirstFit(waiting, cost, kLittlePadding)),
              alone / (1 - kMostSharedPadding) * (1 + 1e-9));
  }
}

// Returns the cheapest of all groupings, by trying each.
double Cheapest(absl::Span<const WaitingRequest> waiting, const ReplayCost& cost) {
  double least = 1e300;
  std::vector<size_t> group_of(waiting.size(), 0);
  const std::function<void(size_t, size_t)> place = [&](size_t i, size_t groups) {
    if (i == waiting.size()) {
      double ns = 0;
      for (size_t g = 0; g < groups; ++g) {
        int64_t rows = 0, size = 0, members = 0;
        for (size_t j = 0; j < waiting.size(); ++j) {
          if (group_of[j] != g) continue;
          rows += waiting[j].rows;
          size = std::max(size, waiting[j].sizes[0]);
          ++members;
        }
        const int64_t sizes[] = {size};
        if (members > 1 && rows > kLimits.most_rows(sizes)) return;
        ns += cost.Ns(rows, size);
      }
      least = std::min(least, ns);
      return;
    }
    for (size_t g = 0; g <= groups; ++g) {
      group_of[i] = g;
      place(i + 1, std::max(groups, g + 1));
    }
  };
  place(0, 0);
  return least;
}

TEST(GroupingPropertyTest, SingleRowsAreGroupedAsCheaplyAsCanBe) {
  std::mt19937_64 random(3);
  const int64_t sizes[] = {16, 40, 70, 140, 300, 512, 2048};
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> lengths(1 + random() % 7);
    for (int64_t& length : lengths) length = sizes[random() % std::size(sizes)];
    const ReplayCost cost = Machine(static_cast<double>(random() % 300'000), 1000);
    const auto waiting = Requests(lengths);
    const Grouping grouping = GroupByCost(waiting, cost, kLimits);
    EXPECT_NEAR(grouping.ns, Cheapest(waiting, cost), 1e-6 * grouping.ns);
  }
}

// Empties a queue as the scheduler does: the batch of the one that waited longest, then the
// rest is looked at again.
double NsToEmpty(std::vector<WaitingRequest> waiting, const ReplayCost& cost,
                 const GroupingLimits& limits) {
  double ns = 0;
  while (!waiting.empty()) {
    const Grouping grouping = GroupByCost(waiting, cost, limits);
    const auto batch = std::find_if(grouping.groups.begin(), grouping.groups.end(),
                                    [](const auto& group) { return group[0] == 0; });
    const std::vector<size_t> members = *batch;
    int64_t rows = 0, size = 0;
    for (const size_t i : members) {
      rows += waiting[i].rows;
      size = std::max(size, waiting[i].sizes[0]);
    }
    ns += cost.Ns(rows, size);
    for (auto it = members.rbegin(); it != members.rend(); ++it) {
      waiting.erase(waiting.begin() + static_cast<int64_t>(*it));
    }
  }
  return ns;
}

TEST(GroupingPropertyTest, EmptyingAQueueNeverCostsMoreThanFirstFit) {
  const int64_t sizes[] = {16, 40, 70, 140, 300, 512};
  for (const GroupingLimits& limits : {kLimits, kLittlePadding}) {
    std::mt19937_64 random(5);
    double ours = 0, first_fit = 0;
    for (int round = 0; round < 300; ++round) {
      std::vector<WaitingRequest> waiting(1 + random() % 60);
      for (WaitingRequest& one : waiting) {
        one = {{sizes[random() % std::size(sizes)]},
               random() % 3 == 0 ? static_cast<int64_t>(1 + random() % 8) : 1};
      }
      const ReplayCost cost = Machine(static_cast<double>(random() % 200'000), 1000);
      const double expected = FirstFit(waiting, cost, limits).ns;
      const double ns = NsToEmpty(waiting, cost, limits);
      EXPECT_LE(ns, expected * (1 + 1e-9)) << "round " << round;
      ours += ns;
      first_fit += expected;
    }
    if (limits.most_padding == 1) {
      EXPECT_LT(ours, 0.85 * first_fit);
    }
  }
}

}  // namespace
}  // namespace reprise

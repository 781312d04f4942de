// Least cuts against all labellings there are.
#include "runtime/passes/layout/minimum_cut.h"

#include <gtest/gtest.h>

#include <random>

namespace reprise {
namespace {

struct Charge {
  size_t thing, other;
  double cost;
};

struct Problem {
  std::vector<std::pair<double, double>> costs;
  std::vector<Charge> charges;

  double CostOf(const std::vector<bool>& labels) const {
    double cost = 0;
    for (size_t i = 0; i < costs.size(); ++i) cost += labels[i] ? costs[i].second : costs[i].first;
    for (const Charge& one : charges) {
      if (!labels[one.thing] && labels[one.other]) cost += one.cost;
    }
    return cost;
  }
  std::vector<bool> Solve() const {
    MinimumCut cut(costs.size());
    for (size_t i = 0; i < costs.size(); ++i) cut.SetCosts(i, costs[i].first, costs[i].second);
    for (const Charge& one : charges) cut.Charge(one.thing, one.other, one.cost);
    std::vector<bool> labels = cut.Solve();
    labels.resize(costs.size());
    return labels;
  }
};

TEST(MinimumCutTest, CostsNoMoreThanAnyOtherLabels) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    Problem problem;
    const size_t things = 1 + static_cast<size_t>(below(8));
    for (size_t i = 0; i < things; ++i) problem.costs.emplace_back(below(10), below(10));
    for (int i = below(20); i > 0; --i) {
      const auto a = static_cast<size_t>(below(static_cast<int>(things)));
      const auto b = static_cast<size_t>(below(static_cast<int>(things)));
      if (a != b) problem.charges.push_back({a, b, static_cast<double>(below(8))});
    }
    double least = 1e9;
    size_t fewest = things;
    for (size_t bits = 0; bits < size_t{1} << things; ++bits) {
      std::vector<bool> labels(things);
      size_t trues = 0;
      for (size_t i = 0; i < things; ++i) trues += (labels[i] = bits >> i & 1) ? 1 : 0;
      const double cost = problem.CostOf(labels);
      if (cost < least || (cost == least && trues < fewest)) fewest = trues;
      least = std::min(least, cost);
    }
    const std::vector<bool> labels = problem.Solve();
    ASSERT_EQ(problem.CostOf(labels), least) << round;
    ASSERT_EQ(static_cast<size_t>(std::count(labels.begin(), labels.end(), true)), fewest) << round;
  }
}

TEST(MinimumCutTest, WhatMayNeverBeIsNot) {
  MinimumCut cut(2);
  cut.SetCosts(0, MinimumCut::kNever, 0);
  cut.SetCosts(1, 0, 5);
  const size_t between = cut.Add();
  cut.Charge(1, between, 100);
  cut.Charge(between, 0, MinimumCut::kNever);
  EXPECT_EQ(cut.Solve(), (std::vector<bool>{true, true, true}));
}

TEST(MinimumCutTest, LongChainsAreSolved) {
  constexpr size_t kThings = 5000;
  MinimumCut cut(kThings);
  cut.SetCosts(0, 0, MinimumCut::kNever);
  for (size_t i = 1; i < kThings; ++i) {
    cut.SetCosts(i, 1, 0);
    cut.Charge(i - 1, i, i == 100 ? 3 : 1000);
  }
  const std::vector<bool> labels = cut.Solve();
  EXPECT_FALSE(labels[99]);
  EXPECT_TRUE(labels[100]);
  EXPECT_TRUE(labels[kThings - 1]);
}

}  // namespace
}  // namespace reprise

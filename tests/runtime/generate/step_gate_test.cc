#include "runtime/generate/step_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace reprise {
namespace {

// A model that has a step of `step_ns` for `key` at any time.
struct BusyModel {
  std::string key;
  double weight;
  int64_t step_ns;
};

// Steps of the models on one place until all together have had `total_ns`; each model's time.
std::vector<int64_t> TimesOf(const std::vector<BusyModel>& models, int64_t total_ns) {
  StepGate gate(1);
  std::atomic<int64_t> all{0};
  std::atomic<size_t> ready{0};
  std::vector<int64_t> times(models.size());
  std::vector<std::thread> threads;
  // None of them steps before all wait.
  StepGate::Member door(gate);
  WeightedShare& none = gate.Of("door", 1);
  gate.Begin(door, {{&none}});
  for (size_t i = 0; i < models.size(); ++i) {
    threads.emplace_back([&, i] {
      WeightedShare& key = gate.Of(models[i].key, models[i].weight);
      gate.Enter(key);
      StepGate::Member member(gate);
      ++ready;
      while (true) {
        gate.Begin(member, {{&key}});
        if (all >= total_ns) break;
        all += models[i].step_ns;
        times[i] += models[i].step_ns;
        gate.Charge(member, {{{&key, models[i].step_ns}}});
      }
      gate.Leave(key);
    });
  }
  while (ready < models.size()) std::this_thread::yield();
  gate.End(door);
  for (std::thread& thread : threads) thread.join();
  return times;
}

TEST(StepGateTest, KeysShareTheTimeByWeightHoweverManyModelsTheyAskAndHoweverLongTheirSteps) {
  const std::vector<int64_t> times =
      TimesOf({{"a", 1, 100}, {"a", 1, 70}, {"a", 1, 10}, {"b", 1, 30}, {"c", 2, 5}}, 400'000);
  const int64_t a = times[0] + times[1] + times[2];
  EXPECT_NEAR(static_cast<double>(a), 100'000, 2'000);
  EXPECT_NEAR(static_cast<double>(times[3]), 100'000, 2'000);
  EXPECT_NEAR(static_cast<double>(times[4]), 200'000, 2'000);
  // And the models of a key share its time.
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(static_cast<double>(times[i]), a / 3.0, 2'000) << i;
}

TEST(StepGateTest, AKeyThatWasIdleSavesUpNothing) {
  StepGate gate(1);
  StepGate::Member first(gate), second(gate);
  WeightedShare& a = gate.Of("a", 1);
  WeightedShare& b = gate.Of("b", 1);
  gate.Enter(a);
  for (int i = 0; i < 100; ++i) {
    gate.Begin(first, {{&a}});
    gate.Charge(first, {{{&a, 10}}});
  }
  gate.Enter(b);
  EXPECT_GE(b.had, 990);
  EXPECT_LE(b.had, a.had);
}

TEST(StepGateTest, WhereThereIsAPlaceForEachNobodyWaits) {
  StepGate gate(2);
  StepGate::Member first(gate), second(gate);
  WeightedShare& a = gate.Of("a", 1);
  for (int i = 0; i < 3; ++i) {
    gate.Begin(first, {{&a}});
    gate.Begin(second, {{&a}});
    gate.Charge(first, {{{&a, 10}}});
  }
}

}  // namespace
}  // namespace reprise

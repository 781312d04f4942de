// How long the solver takes: k = 8 boundaries over 12,515 lengths, all of them distinct at worst,
// and the grid of rows and lengths that a server solves while it runs.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "runtime/bucket/boundaries.h"
#include "runtime/bucket/grid_solver.h"
#include "runtime/bucket/solver.h"

namespace reprise {
namespace {

constexpr int kBatches = 12515;
constexpr int kRounds = 21;

double Elements(int64_t size) { return static_cast<double>(size); }

double MedianMs(const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::sort(times.begin(), times.end());
  return times[kRounds / 2];
}

// Batches of 7 questions with their paragraphs, padded to the longest.
std::vector<int64_t> SquadLike(std::mt19937_64& random) {
  std::lognormal_distribution<double> length(std::log(115.0), 0.35);
  std::vector<int64_t> batches;
  for (int i = 0; i < kBatches; ++i) {
    double longest = 0;
    for (int j = 0; j < 7; ++j) longest = std::max(longest, length(random));
    batches.push_back(static_cast<int64_t>(std::clamp(longest, 30.0, 867.0)));
  }
  return batches;
}

void Main() {
  std::mt19937_64 random(1);
  std::vector<WeightedSize> counted;
  const std::vector<int64_t> squad = SquadLike(random);
  const double squad_ms = MedianMs([&] {
    counted = CountSizes(squad);
    SolveBoundaries(counted, 8, Elements);
  });
  std::printf("k=8, %d lengths, %zu distinct: %.2f ms (median of %d)\n", kBatches, counted.size(),
              squad_ms, kRounds);

  std::vector<int64_t> distinct(kBatches);
  for (int i = 0; i < kBatches; ++i) distinct[i] = 1 + 5 * i + static_cast<int64_t>(random() % 5);
  std::shuffle(distinct.begin(), distinct.end(), random);
  const double distinct_ms = MedianMs([&] {
    counted = CountSizes(distinct);
    SolveBoundaries(counted, 8, Elements);
  });
  std::printf("k=8, %d lengths, %zu distinct: %.2f ms\n", kBatches, counted.size(), distinct_ms);

  SizeHistogram histogram;
  for (int i = 0; i < 1024; ++i) {
    histogram.Add(std::vector<int64_t>{int64_t{1} << random() % 6, squad[i] % 512 + 1});
  }
  const std::vector<WeightedSizes> seen = histogram.Snapshot();
  const BindingCost cost = [](absl::Span<const int64_t> sizes, absl::Span<const int64_t> binding) {
    return 1000 + static_cast<double>(sizes[0] * binding[1]);
  };
  const double grid_ms = MedianMs([&] {
    SolveGrid(seen, cost, {.most = {6, 8}, .batch_axis = 0, .max_product = 4096});
  });
  std::printf("6 x 8 over %zu replays of rows and length: %.1f ms\n", seen.size(), grid_ms);
}

}  // namespace
}  // namespace reprise

int main() { reprise::Main(); }

// bench_launches: the cost of a launch without its kernel, on one thread.
//
//   bench_launches [LAUNCHES]
//
// Replays recipes of many tiny launches (100 unless told), which no pass fuses, and prints the
// median microseconds of a replay and nanoseconds of a launch.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "absl/strings/numbers.h"
#include "runtime/base/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/replay/helper_pool.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/graph/graph.h"
#include "runtime/recipe/compiler.h"

namespace {

using namespace reprise;  // a program of its own

class NoErrors final : public ReplayErrors {
 public:
  void Report(int, int, int64_t, int64_t, int64_t, int64_t) override {}
  void Fail(int, const absl::Status&) override {}
};

constexpr int kRounds = 15;
constexpr int kReplays = 2000;

double MedianUs(Stream& stream, const Recipe& recipe, const Frame& frame) {
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kReplays; ++i) stream.Replay(recipe, frame);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count() / kReplays);
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

// `launches` times Softmax over its own result, [1, `width`].
Graph Chain(int launches, int64_t width) {
  Graph graph;
  ValueId value = graph.AddInput("x", DType::kFloat32, {{.size = 1}, {.size = width}});
  for (int i = 0; i < launches; ++i) {
    value = graph.node(graph.AddNode("Softmax", {value}, {{"axis", int64_t{-1}}})).output(0);
  }
  graph.AddOutput(value);
  return graph;
}

}  // namespace

int main(int argc, char** argv) {
  int launches = 100;
  if (argc > 1 && (!absl::SimpleAtoi(argv[1], &launches) || launches < 1)) {
    std::fprintf(stderr, "usage: bench_launches [LAUNCHES]\n");
    return 2;
  }
  const SteadyClock clock;
  const CpuDevice device;
  HelperPool cores(1);
  auto stream = *Stream::Create({.cores = &cores});
  NoErrors errors;
  std::printf("%6s %9s %12s %12s\n", "width", "launches", "us a replay", "ns a launch");
  for (const int64_t width : {1, 16, 64}) {
    const Graph graph = Chain(launches, width);
    const auto recipe = Compile(graph, MakeKey(FingerprintGraph(graph), {}, device.fingerprint()),
                                {.device = &device, .clock = &clock});
    const absl::Status ready = recipe.ok() ? stream->Reserve(**recipe) : recipe.status();
    if (!ready.ok()) {
      std::fprintf(stderr, "%s\n", ready.ToString().c_str());
      return 1;
    }
    const Frame frame = stream->MakeFrame(**recipe, nullptr, &errors);
    const double us = MedianUs(*stream, **recipe, frame);
    std::printf("%6d %9zu %12.2f %12.1f\n", static_cast<int>(width), (*recipe)->launches.size(), us,
                1000 * us / (*recipe)->launches.size());
  }
}

// bench_mixed: requests of mixed lengths, packed against padded, in one process and run.
//
//   bench_mixed MODEL.onnx [--threads N] [--requests N] [--window N] [--rounds N]
//               [--max-batch-tokens N] [--max-isa ISA]
//
// Three seeded traces: short queries (lognormal, median 14, sigma 0.6, 4 to 64), SQuAD-like
// (lognormal, median 150, sigma 0.5, 16 to 512), chat (half short, half long, 8 to 512). Whatever
// lies within a window of requests may share a replay. The sides alternate, round by round; every
// side meets its first round cold, so that its captures are in the first figure. Printed are tokens
// a second, cold and warm (the median of the other rounds), the share of computed elements that no
// request sent, and each side's ratio to `padded`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "tests/bench/trace.h"

namespace {

using namespace reprise;  // a program of its own

// Adds up the computed elements.
class CountingObserver final : public Observer {
 public:
  struct Counts {
    int64_t valid = 0, padded = 0, replays = 0, compiles = 0;
  };
  std::unique_ptr<ModelObserver> ForModel(const ModelObserverSpec& spec) override {
    return std::make_unique<ForOne>(counts_, spec.axes.size() - 1);
  }
  Counts Take() { return std::exchange(counts_, {}); }

 private:
  class ForOne final : public ModelObserver {
   public:
    ForOne(Counts& counts, size_t axis) : counts_(counts), axis_(axis) {}
    void On(const ModelEvent& event) override {
      std::visit(OfEvent{[this](const CompileRecord&) { ++counts_.compiles; },
                         [this](const ReplayRecord& record) {
                           ++counts_.replays;
                           counts_.valid += record.axes[axis_].valid;
                           counts_.padded += record.axes[axis_].padded;
                         },
                         [](const ReferenceLaunch& launch) {
                           std::cerr << "reference kernel: " << launch.op << " at " << launch.node
                                     << "\n";
                         },
                         [](const auto&) {}},
                 event);
    }

   private:
    Counts& counts_;
    const size_t axis_;
  };
  Counts counts_;
};

struct Trace {
  const char* name;
  std::vector<int64_t> lengths;
};

std::vector<Trace> MakeTraces(int64_t requests) {
  std::mt19937 random(2024);
  const auto lognormal = [&](double median, double sigma, int64_t low, int64_t high) {
    std::lognormal_distribution<double> lengths(std::log(median), sigma);
    return std::clamp<int64_t>(std::llround(lengths(random)), low, high);
  };
  std::vector<Trace> traces = {{"short", {}}, {"squad", {}}, {"chat", {}}};
  for (int64_t i = 0; i < requests; ++i) {
    traces[0].lengths.push_back(lognormal(14, 0.6, 4, 64));
    traces[1].lengths.push_back(lognormal(150, 0.5, 16, 512));
    traces[2].lengths.push_back(random() % 2 == 0 ? lognormal(20, 0.6, 8, 512)
                                                  : lognormal(300, 0.4, 8, 512));
  }
  return traces;
}

// One side of the comparison: an engine of its own.
struct Side {
  Side(const char* name, int threads, Isa isa)
      : name(name),
        cores(threads),
        device(isa),
        engine({.device = &device, .clock = &clock, .cores = &cores}, observer) {}

  const char* name;
  bool alone = false;  // every request is a batch
  SteadyClock clock;
  HelperPool cores;
  CpuDevice device;
  CountingObserver observer;
  Engine engine;
  std::shared_ptr<Model> model;
  std::unique_ptr<Stream> stream;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: bench_mixed MODEL.onnx [--threads N] [--requests N] [--window N]"
                 " [--rounds N] [--max-batch-tokens N] [--max-isa ISA]\n";
    return 2;
  }
  int threads = 1;
  int64_t count = 500, window = 32, rounds = 4, batch_tokens = 4096;
  Isa isa = DetectIsa();
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    bool ok = true;
    if (flag == "--threads") ok = absl::SimpleAtoi(argv[i + 1], &threads);
    if (flag == "--requests") ok = absl::SimpleAtoi(argv[i + 1], &count);
    if (flag == "--window") ok = absl::SimpleAtoi(argv[i + 1], &window);
    if (flag == "--rounds") ok = absl::SimpleAtoi(argv[i + 1], &rounds);
    if (flag == "--max-batch-tokens") ok = absl::SimpleAtoi(argv[i + 1], &batch_tokens);
    if (flag == "--max-isa") isa = ParseIsa(argv[i + 1]).value_or(isa);
    if (!ok) return 2;
  }

  std::printf("%-6s %-8s %12s %12s %8s %8s %8s %9s\n", "trace", "side", "cold tok/s", "warm tok/s",
              "ratio", "padding", "replays", "captures");
  for (const Trace& trace : MakeTraces(count)) {
    std::vector<std::unique_ptr<Side>> sides;
    for (const char* name : {"padded", "alone", "packed"}) {
      sides.push_back(std::make_unique<Side>(name, threads, isa));
      Side& side = *sides.back();
      side.alone = name == std::string("alone");
      const bool packed = name == std::string("packed");
      auto model = side.engine.Load({.id = {"model", 1},
                                     .path = argv[1],
                                     .max_batch_tokens = packed ? batch_tokens : 4096,
                                     .packing = packed ? PackingMode::kAuto : PackingMode::kOff});
      auto stream = Stream::Create({.cores = &side.cores, .max_threads = threads});
      if (!model.ok() || !stream.ok()) {
        std::cerr << model.status() << " " << stream.status() << "\n";
        return 1;
      }
      side.model = *std::move(model);
      side.stream = *std::move(stream);
      if (packed && side.model->packing() == nullptr) {
        std::cerr << "not packed: " << side.model->packing_refusal() << "\n";
        return 1;
      }
    }
    std::mt19937 random(7);
    std::vector<std::unique_ptr<OneRow>> requests;
    int64_t tokens = 0;
    for (const int64_t length : trace.lengths) {
      requests.push_back(std::make_unique<OneRow>(*sides[0]->model, length, random));
      tokens += length;
    }
    std::vector<std::vector<int64_t>> ns(sides.size());
    std::vector<CountingObserver::Counts> counts(sides.size());
    for (int64_t round = 0; round < rounds; ++round) {
      for (size_t s = 0; s < sides.size(); ++s) {
        ns[s].push_back(RunTrace(sides[s]->engine, *sides[s]->model, *sides[s]->stream, requests,
                                 window, sides[s]->alone));
        const CountingObserver::Counts one = sides[s]->observer.Take();
        const int64_t compiles = counts[s].compiles + one.compiles;
        counts[s] = one;
        counts[s].compiles = compiles;
      }
    }
    std::vector<double> warm;
    for (std::vector<int64_t>& side : ns) {
      std::vector<int64_t> later(side.begin() + (rounds > 1), side.end());
      std::sort(later.begin(), later.end());
      warm.push_back(tokens * 1e9 / static_cast<double>(later[later.size() / 2]));
    }
    for (size_t s = 0; s < sides.size(); ++s) {
      const CountingObserver::Counts& c = counts[s];
      std::printf("%-6s %-8s %12.0f %12.0f %8.2f %7.1f%% %8ld %9ld\n", trace.name, sides[s]->name,
                  tokens * 1e9 / static_cast<double>(ns[s][0]), warm[s], warm[s] / warm[0],
                  100.0 * c.padded / std::max<int64_t>(1, c.valid + c.padded), c.replays,
                  c.compiles);
    }
    std::fflush(stdout);
  }
  return 0;
}

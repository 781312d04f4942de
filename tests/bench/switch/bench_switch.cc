// bench_switch: the cost of going from one model to another on the same stream.
//
//   bench_switch MODEL.onnx MODEL.onnx MODEL.onnx... [--length N] [--rounds N] [--threads N]
//
// Requests of one row and `length` tokens, in two orders that alternate round by round: each model
// several times in a row, and each after every other. Printed are the medians of a request in both
// orders, their difference (the switch cost: caches that hold the other model's weights; nothing is
// captured), and the captures that were made while it was measured, which must be none. A model may
// be named several times: it is then loaded several times.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/silent_observer.h"

namespace {

using namespace reprise;  // a program of its own

constexpr int kInARow = 8;

struct Loaded {
  std::shared_ptr<Model> model;
  std::vector<std::string> bytes;  // one string an input
  Request request;
  std::vector<double> in_a_row_us, switched_us;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Ones everywhere: in range for ids and masks.
void MakeRequest(Loaded& one, int64_t length) {
  for (const ModelIo& input : one.model->inputs()) {
    if (input.optional) {
      one.bytes.emplace_back();
      one.request.inputs.push_back({});
      continue;
    }
    Shape shape;
    for (const Dim& dim : input.dims) {
      int64_t size = dim.size;
      if (!dim.is_constant()) size = one.model->LabelOf(dim.symbol) == "batch" ? 1 : length;
      shape.push_back(size);
    }
    std::string bytes(NumElements(shape) * DTypeSize(input.dtype), '\0');
    for (size_t i = 0; IsInteger(input.dtype) && i < bytes.size(); i += DTypeSize(input.dtype)) {
      bytes[i] = 1;
    }
    one.bytes.push_back(std::move(bytes));
    one.request.inputs.push_back({std::move(shape), nullptr});
  }
  for (size_t i = 0; i < one.bytes.size(); ++i) {
    if (!one.bytes[i].empty()) one.request.inputs[i].data = one.bytes[i].data();
  }
}

int Run(const std::vector<std::string>& paths, int64_t length, int rounds, int threads) {
  SteadyClock clock;
  CpuDevice device{{.max_isa = kEveryIsa}};
  HelperPool cores(threads);
  SilentObserver observer;
  int64_t captures = 0;
  Engine engine({.device = &device,
                 .clock = &clock,
                 .cores = &cores,
                 .on_capture = [&](const MissRecord&) { ++captures; }},
                observer);
  auto stream = Stream::Create({.cores = &cores, .max_threads = threads});
  if (!stream.ok()) return 1;
  std::vector<Loaded> models(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    auto model = engine.Load(
        {.id = {absl::StrCat("m", i), 1}, .path = paths[i], .bucket_mode = BucketMode::kOff});
    if (!model.ok()) {
      std::fprintf(stderr, "%s: %s\n", paths[i].c_str(), model.status().ToString().c_str());
      return 1;
    }
    models[i].model = *model;
    MakeRequest(models[i], length);
  }
  const auto time = [&](Loaded& one) {
    const auto start = std::chrono::steady_clock::now();
    const Response response = engine.RunOne(*one.model, one.request, **stream);
    if (!response.status.ok()) {
      std::fprintf(stderr, "%s\n", response.status.ToString().c_str());
      std::exit(1);
    }
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
  };
  for (Loaded& one : models) {
    for (int i = 0; i < 3; ++i) time(one);
  }
  const int64_t before = captures;
  for (int round = 0; round < rounds; ++round) {
    for (Loaded& one : models) {
      time(one);  // comes after another model
      for (int i = 0; i < kInARow; ++i) one.in_a_row_us.push_back(time(one));
    }
    for (int i = 0; i < kInARow; ++i) {
      for (Loaded& one : models) one.switched_us.push_back(time(one));
    }
  }
  std::printf("%zu models, length %lld, %d threads, %d rounds of %d requests a model and order\n",
              models.size(), static_cast<long long>(length), threads, rounds, kInARow);
  std::printf("%-44s %12s %12s %10s %7s\n", "model", "in a row us", "switched us", "cost us",
              "ratio");
  for (size_t i = 0; i < models.size(); ++i) {
    const double row = Median(models[i].in_a_row_us), switched = Median(models[i].switched_us);
    const std::string name =
        paths[i].size() > 44 ? paths[i].substr(paths[i].size() - 44) : paths[i];
    std::printf("%-44s %12.1f %12.1f %10.1f %7.3f\n", name.c_str(), row, switched, switched - row,
                switched / row);
  }
  std::printf("captures while measuring: %lld\n", static_cast<long long>(captures - before));
  return captures == before ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> paths;
  int length = 64, rounds = 20, threads = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    int* target = argument == "--length"    ? &length
                  : argument == "--rounds"  ? &rounds
                  : argument == "--threads" ? &threads
                                            : nullptr;
    if (target == nullptr) {
      paths.push_back(argument);
    } else if (++i == argc || !absl::SimpleAtoi(argv[i], target) || *target < 1) {
      std::fprintf(stderr, "%s needs a number of at least 1\n", argument.c_str());
      return 2;
    }
  }
  if (paths.empty()) {
    std::fprintf(stderr, "usage: bench_switch MODEL.onnx... [--length N] [--rounds N]\n");
    return 2;
  }
  return Run(paths, length, rounds, threads);
}

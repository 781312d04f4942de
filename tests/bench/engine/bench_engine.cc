// bench_engine: the engine in process, driven line by line, so that a script can alternate it with
// its peers over the same inputs in one run.
//
//   bench_engine MODEL.onnx [--threads N] [--max-isa ISA] [--packing auto|off]
//     [--capture quick|inline] [--precision exact|bf16|int8] [--weights stored|int8|int4]
//
// Reads one JSON object a line from standard input and answers with one:
//
//   {"op": "time", "repeat": 5, "inputs": [{"shape": [1, 32], "file": "ids.raw"}, ...]}
//     -> {"ns": [...], "bucket": "b1_s32", "capture": "captured"}
//   with "outputs": "prefix" the outputs are written to prefix.0, prefix.1, ... and their shapes
//   are answered as "shapes".
//   {"op": "profile", "repeat": 5, "inputs": [...]} prints a table of launches to standard error.
//     -> {"floor_ns": ..., "weight_bytes": ...}, what a replay would take at the roofline of this
//   machine, one thread; with "gflops" and "weight_gbytes" these are its rates, else measured ones
//   {"op": "read", "bytes": 42000000, "repeat": 5}
//     -> {"ns": [...], "bytes": ...}, one core that does nothing but read this number of bytes, or
//   a few more, once each time
//   {"op": "trace", "lengths": [...], "window": 32, "repeat": 2}
//     -> {"ns": [...]}, requests of one row each, those within a window in shared replays
//   {"op": "memory"} -> {"rss_kb": ...}
//   {"op": "captures"} -> {"captures": [{"bucket": "b1_s32", "capture_us": ..., "prepare_us": ...,
//   "prime_us": ...}, ...]}, all so far; capture: from specialising to published, without the
//   others
//
// The first line that it prints is {"load_ns": ..., "axes": [...]}.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "absl/strings/numbers.h"
#include "runtime/base/heap.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cpu/machine_peak.h"
#include "runtime/engine/engine.h"
#include "tests/bench/trace.h"

namespace {

using nlohmann::json;
using namespace reprise;  // a program of its own

class PrintingModelObserver final : public ModelObserver {
 public:
  explicit PrintingModelObserver(json& captures) : captures_(captures) {}
  void On(const ModelEvent& event) override {
    std::visit(OfEvent{[this](const CompileRecord& record) { Print(record); },
                       [](const ReferenceLaunch& launch) {
                         std::cerr << "reference kernel: " << launch.op << " at " << launch.node
                                   << "\n";
                       },
                       [](const auto&) {}},
               event);
  }

 private:
  void Print(const CompileRecord& record) {
    const CapturePhases& phases = record.phases;
    std::cerr << "compile " << record.bucket << " specialize " << phases.specialize_ns / 1000
              << " us, passes " << phases.passes_ns / 1000 << ", plan " << phases.plan_ns / 1000
              << ", bind " << phases.bind_ns / 1000 << ", prepare " << phases.prepare_ns / 1000
              << ", prime " << phases.prime_ns / 1000 << "\n";
    captures_.push_back(
        {{"bucket", record.bucket},
         {"capture_us",
          (phases.specialize_ns + phases.passes_ns + phases.plan_ns + phases.bind_ns) / 1000},
         {"prepare_us", phases.prepare_ns / 1000},
         {"prime_us", phases.prime_ns / 1000}});
  }

  json& captures_;
};

class PrintingObserver final : public Observer {
 public:
  std::unique_ptr<ModelObserver> ForModel(const ModelObserverSpec&) override {
    return std::make_unique<PrintingModelObserver>(captures_);
  }
  const json& captures() const { return captures_; }

 private:
  json captures_ = json::array();  // this program captures on the thread that asks
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

int64_t RssKb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoll(line.substr(6));
  }
  return 0;
}

int Fail(const std::string& message) {
  std::cout << json{{"error", message}} << std::endl;
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  KeepFreedMemory();  // as reprised does
  if (argc < 2) {
    std::cerr << "usage: bench_engine MODEL.onnx [--threads N] [--max-isa ISA]"
                 " [--packing auto|off] [--capture quick|inline]"
                 " [--precision exact|bf16|int8] [--weights stored|int8|int4]\n";
    return 2;
  }
  int threads = 1;
  Isa isa = DetectIsa();
  PackingMode packing = PackingMode::kOff;
  CapturePolicy capture = CapturePolicy::kQuick;
  Precision precision = Precision::kExact;
  WeightBits weights = WeightBits::kStored;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--threads" && !absl::SimpleAtoi(argv[i + 1], &threads)) return 2;
    if (flag == "--packing" && argv[i + 1] == std::string("auto")) packing = PackingMode::kAuto;
    if (flag == "--capture" && argv[i + 1] == std::string("inline")) {
      capture = CapturePolicy::kInline;
    }
    if (flag == "--weights") weights = ParseWeightBits(argv[i + 1]).value_or(weights);
    if (flag == "--precision") precision = ParsePrecision(argv[i + 1]).value_or(precision);
    if (flag == "--max-isa") isa = ParseIsa(argv[i + 1]).value_or(isa);
  }
  isa = UsableIsa(isa);
  SteadyClock clock;
  CpuDevice device(isa);
  PrintingObserver observer;
  HelperPool cores(threads);
  Engine engine({.device = &device,
                 .clock = &clock,
                 .cores = &cores,
                 .log = [](const std::string& line) { std::cerr << line << "\n"; }},
                observer);
  const int64_t start = clock.NowNs();
  auto model = engine.Load({.id = {"model", 1},
                            .path = argv[1],
                            .packing = packing,
                            .precision = precision,
                            .weights = weights,
                            .capture = capture});
  if (!model.ok()) return Fail(std::string(model.status().message()));
  json loaded = {{"load_ns", clock.NowNs() - start}, {"axes", json::array()}};
  for (const ModelAxis& axis : (*model)->axes()) {
    loaded["axes"].push_back({{"label", axis.label}, {"certified", axis.certificate.certified}});
  }
  std::cout << loaded << std::endl;
  auto stream = Stream::Create({.cores = &cores, .max_threads = threads});
  if (!stream.ok()) return Fail(std::string(stream.status().message()));

  std::unique_ptr<cpu::WeightReader> reader;
  for (std::string line; std::getline(std::cin, line);) {
    const json command = json::parse(line);
    if (command["op"] == "memory") {
      std::cout << json{{"rss_kb", RssKb()}} << std::endl;
      continue;
    }
    if (command["op"] == "captures") {
      std::cout << json{{"captures", observer.captures()}} << std::endl;
      continue;
    }
    if (command["op"] == "trace") {
      std::mt19937 random(7);
      std::vector<std::unique_ptr<OneRow>> requests;
      for (int64_t length : command["lengths"]) {
        requests.push_back(std::make_unique<OneRow>(**model, length, random));
      }
      json answer = {{"ns", json::array()}};
      for (int i = 0; i < command.value("repeat", 1); ++i) {
        answer["ns"].push_back(RunTrace(engine, **model, **stream, requests,
                                        command.value("window", 32), /*alone=*/false));
      }
      std::cout << answer << std::endl;
      continue;
    }
    if (command["op"] == "read") {
      if (reader == nullptr || reader->bytes() < command["bytes"]) {
        reader = std::make_unique<cpu::WeightReader>(isa, command["bytes"]);
      }
      json answer = {{"ns", json::array()}, {"bytes", reader->bytes()}};
      for (int i = 0; i < command.value("repeat", 1); ++i) {
        const int64_t begin = clock.NowNs();
        reader->Pass();
        answer["ns"].push_back(clock.NowNs() - begin);
      }
      std::cout << answer << std::endl;
      continue;
    }
    Request request;
    std::vector<std::string> bytes;
    for (const json& input : command["inputs"]) bytes.push_back(ReadFile(input["file"]));
    for (size_t i = 0; i < bytes.size(); ++i) {
      Shape shape;
      for (int64_t size : command["inputs"][i]["shape"]) shape.push_back(size);
      request.inputs.push_back({shape, bytes[i].data()});
    }
    if (command["op"] == "profile") {
      const auto profile = engine.Profile(**model, request, **stream, command.value("repeat", 5));
      if (!profile.ok()) return Fail(std::string(profile.status().message()));
      const Recipe& recipe = *profile->recipe;
      const RecipeBytes bytes = BytesOf(recipe);
      Roofline roofline = cpu::MeasureRoofline(isa, static_cast<size_t>(bytes.weights),
                                               static_cast<size_t>(bytes.others));
      roofline.gflops = command.value("gflops", roofline.gflops);
      roofline.weight_gbytes = command.value("weight_gbytes", roofline.weight_gbytes);
      std::cerr << ProfileTable(*profile, roofline);
      std::cout << json{{"floor_ns", FloorNs(recipe, roofline)},
                        {"gflops", roofline.gflops},
                        {"gbytes", roofline.weight_gbytes},
                        {"weight_bytes", bytes.weights}}
                << std::endl;
      continue;
    }
    json answer = {{"ns", json::array()}};
    for (int i = 0; i < command.value("repeat", 1); ++i) {
      const int64_t begin = clock.NowNs();
      const Response response = engine.RunOne(**model, request, **stream);
      answer["ns"].push_back(clock.NowNs() - begin);
      if (!response.status.ok()) {
        answer = {{"error", response.status.message().data()}};
        break;
      }
      answer["bucket"] = response.info.bucket;
      answer["capture"] = std::string(CaptureOutcomeName(response.info.capture));
      if (i == 0 && command.contains("outputs")) {
        for (size_t o = 0; o < response.outputs.size(); ++o) {
          const std::string path = command["outputs"].get<std::string>() + "." + std::to_string(o);
          std::ofstream(path, std::ios::binary) << response.outputs[o].bytes;
          answer["shapes"].push_back(std::vector<int64_t>(response.outputs[o].shape.begin(),
                                                          response.outputs[o].shape.end()));
        }
      }
    }
    std::cout << answer << std::endl;
  }
  return 0;
}

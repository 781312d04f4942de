// Capture and replay in this process: no server, no socket.
//
//   in_process MODEL.onnx [LENGTH [METRICS.json]]
//
// Sends the same request twice. The first one captures the recipe of its bucket, the second one
// replays it. With a third argument the engine writes a log of its compiles and replays to that
// file.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/silent_observer.h"

namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "in_process: %s\n", std::string(status.message()).c_str());
  return 1;
}

// One row of `length` along every axis but the batch; ones in every element.
struct OnesRequest {
  OnesRequest(const reprise::Model& model, int64_t length) {
    for (const reprise::ModelIo& input : model.inputs()) {
      if (input.optional) {
        request.inputs.emplace_back();
        continue;
      }
      reprise::Shape shape;
      for (const reprise::Dim& dim : input.dims) {
        const int batch = model.batch_axis();
        const bool is_batch = batch >= 0 && dim.symbol == model.axes()[batch].symbol;
        shape.push_back(dim.is_constant() ? dim.size : is_batch ? 1 : length);
      }
      columns.push_back(reprise::Tensor::Make(input.dtype, shape, [&](void* data) {
        const int64_t elements = reprise::NumElements(shape);
        if (input.dtype == reprise::DType::kInt64) {
          for (int64_t i = 0; i < elements; ++i) static_cast<int64_t*>(data)[i] = 1;
        } else if (input.dtype == reprise::DType::kFloat32) {
          for (int64_t i = 0; i < elements; ++i) static_cast<float*>(data)[i] = 1;
        } else {
          std::memset(data, 0, elements * reprise::DTypeSize(input.dtype));
        }
      }));
      request.inputs.push_back({shape, columns.back().data()});
    }
  }

  std::vector<reprise::Tensor> columns;  // own the bytes
  reprise::Request request;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: in_process MODEL.onnx [LENGTH [METRICS.json]]\n");
    return 2;
  }
  const int64_t length = argc > 2 ? std::atoll(argv[2]) : 40;

  reprise::SteadyClock clock;
  reprise::CpuDevice device;
  reprise::HelperPool cores(reprise::AvailableCpus());
  reprise::SilentObserver observer;
  reprise::Engine engine({.device = &device,
                          .clock = &clock,
                          .cores = &cores,
                          .metrics_file = argc > 3 ? argv[3] : ""},
                         observer);
  const auto model = engine.Load({.id = {"example", 1}, .path = argv[1]});
  if (!model.ok()) return Fail(model.status());
  const auto stream = reprise::Stream::Create({.cores = &cores, .max_threads = cores.cores()});
  if (!stream.ok()) return Fail(stream.status());

  const OnesRequest ones(**model, length);
  std::string first_bytes;
  for (int i = 0; i < 2; ++i) {
    const int64_t start = clock.NowNs();
    const reprise::Response response = engine.RunOne(**model, ones.request, **stream);
    if (!response.status.ok()) return Fail(response.status);
    std::printf("%s: recipe %s, bucket %s, %.2f ms, output '%s' %s\n",
                std::string(reprise::CaptureOutcomeName(response.info.capture)).c_str(),
                response.info.recipe.c_str(), response.info.bucket.c_str(),
                (clock.NowNs() - start) / 1e6, (*model)->outputs()[0].name.c_str(),
                reprise::ShapeToString(response.outputs[0].shape).c_str());
    if (i == 0) first_bytes = response.outputs[0].bytes;
    if (response.outputs[0].bytes != first_bytes) {
      std::fprintf(stderr, "in_process: the replay gave another answer\n");
      return 1;
    }
  }
  return 0;
}

// Asynchronous launch: many requests under way, batched as the daemon batches; streams and events.
//
//   async MODEL.onnx [REQUESTS]
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "runtime/launch/work_stream.h"
#include "runtime/program/runtime.h"

namespace {

// One row of `length` along each axis but the batch, of ones.
struct OnesRequest {
  OnesRequest(const reprise::Model& model, int64_t length) {
    for (const reprise::ModelIo& input : model.inputs()) {
      reprise::Shape shape;
      for (const reprise::Dim& dim : input.dims) {
        const int batch = model.batch_axis();
        const bool is_batch = batch >= 0 && dim.symbol == model.axes()[batch].symbol;
        shape.push_back(dim.is_constant() ? dim.size : is_batch ? 1 : length);
      }
      const int64_t elements = reprise::NumElements(shape);
      if (input.dtype == reprise::DType::kInt64) {
        ids.emplace_back(std::make_unique<std::vector<int64_t>>(elements, 1));
        request.inputs.push_back({shape, ids.back()->data()});
      } else {
        values.emplace_back(std::make_unique<std::vector<float>>(elements, 1.0f));
        request.inputs.push_back({shape, values.back()->data()});
      }
    }
  }
  std::vector<std::unique_ptr<std::vector<int64_t>>> ids;
  std::vector<std::unique_ptr<std::vector<float>>> values;
  reprise::Request request;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: async MODEL.onnx [REQUESTS]\n");
    return 2;
  }
  const int requests = argc > 2 ? std::atoi(argv[2]) : 32;
  // A wait lets requests that come together share a replay, on a busy machine too.
  auto runtime = reprise::Runtime::Create({.launcher = {.delay_ns = 50'000'000}});
  if (!runtime.ok()) return 1;
  const auto model = (*runtime)->Load(argv[1]);
  if (!model.ok()) {
    std::fprintf(stderr, "async: %s\n", std::string(model.status().message()).c_str());
    return 1;
  }

  // Half by futures, half by callbacks.
  std::vector<std::unique_ptr<OnesRequest>> sent;
  std::vector<reprise::Future> answers;
  std::atomic<int> called_back{0};
  for (int i = 0; i < requests; ++i) {
    sent.push_back(std::make_unique<OnesRequest>(**model, 8));
    if (i % 2 == 0) {
      answers.push_back((*runtime)->Submit(*model, sent.back()->request));
    } else {
      (*runtime)->Submit(*model, sent.back()->request, [&](const reprise::Response& response) {
        if (response.status.ok()) ++called_back;
      });
    }
  }
  int answered = 0;
  int64_t largest = 0;
  for (reprise::Future& answer : answers) {
    const reprise::Response response = answer.Get();
    answered += response.status.ok();
    largest = std::max(largest, response.info.batch_size);
  }
  (*runtime)->launcher().WaitUntilIdle(std::chrono::seconds(60));
  std::printf("%d answers by futures, %d by callbacks, the largest batch had %s row\n", answered,
              called_back.load(), largest > 1 ? "more than one" : "one");

  // Two sessions on two streams; the second begins when the first has ended.
  reprise::AxisSizes sizes;
  for (const reprise::ModelAxis& axis : (*model)->axes()) sizes[axis.label] = axis.is_batch ? 1 : 8;
  const auto first = (*runtime)->Bind(*model, sizes);
  const auto second = (*runtime)->Bind(*model, sizes);
  if (!first.ok() || !second.ok()) return 1;
  reprise::Event done;
  reprise::WorkStream one, other;
  one.Replay(**first);
  one.Record(done);
  other.Wait(done);
  other.Call([&] {
    return (*first)->replays() == 1 ? absl::OkStatus() : absl::InternalError("it came too early");
  });
  other.Replay(**second);
  const absl::Status ended = other.Synchronize();
  std::printf("streams: %s\n", ended.ok() ? "in order" : std::string(ended.message()).c_str());
  return ended.ok() && answered == static_cast<int>(answers.size()) ? 0 : 1;
}

// Captured work in this process: ops of a program as a graph, and a model bound to memory.
//
//   capture [MODEL.onnx [SIZE]]
//
// Both replay without an argument, over inputs and outputs at addresses that stay.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/lazy/capture.h"
#include "runtime/lazy/ops.h"
#include "runtime/program/runtime.h"

namespace {

using reprise::lazy::Tensor;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "capture: %s\n", std::string(status.message()).c_str());
  return 1;
}

// b = (a + 1) * 2, captured once and replayed over other values of a.
absl::Status CaptureOps(reprise::OpStream& stream) {
  Tensor a = stream.FromVector<float>({4}, {1, 2, 3, 4});
  a.SetName("a");
  reprise::CapturedGraph graph;
  {
    reprise::Capture capture(stream, graph);
    const Tensor b = a + 1;
    capture.Output("b", b * 2);
  }
  if (!graph.status().ok()) return graph.status();
  const absl::Span<float> in = graph.input<float>("a");
  const absl::Span<const float> out = graph.output<float>("b");
  for (int round = 0; round < 2; ++round) {
    if (const absl::Status status = graph.Replay(); !status.ok()) return status;
    std::printf("a[0] = %g, b[0] = %g, b[3] = %g\n", in[0], out[0], out[3]);
    in[0] = 10;
  }
  return absl::OkStatus();
}

// Shows that an op without a fixed shape fails at its line, and gives advice.
void RefuseData(reprise::OpStream& stream) {
  const Tensor a = stream.FromVector<float>({4}, {1, 0, 3, 0});
  reprise::CapturedGraph graph;
  {
    reprise::Capture capture(stream, graph);
    const Tensor places = reprise::lazy::Op("NonZero", {a});
  }
  std::printf("refused: %s\n", std::string(graph.status().message()).c_str());
}

// Binds a model from bytes, bound to one shape; outputs go to memory of the program.
absl::Status BindModel(reprise::Runtime& runtime, const std::string& path, int64_t size) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  absl::StatusOr<std::shared_ptr<reprise::Model>> model = runtime.LoadBytes(bytes);
  if (!model.ok()) return model.status();
  reprise::AxisSizes sizes;
  for (const reprise::ModelAxis& axis : (*model)->axes()) {
    sizes[axis.label] = axis.is_batch ? 1 : size;
  }
  absl::StatusOr<std::unique_ptr<reprise::Session>> session = runtime.Bind(*model, sizes);
  if (!session.ok()) return session.status();
  for (const reprise::Session::Place& input : (*session)->inputs()) {
    for (int64_t& id : (*session)->input<int64_t>(input.name)) id = 1;
    for (float& value : (*session)->input<float>(input.name)) value = 1;
  }
  const reprise::Session::Place output = (*session)->outputs()[0];
  std::vector<std::byte> mine(output.bytes);
  if (const absl::Status placed = (*session)->PlaceOutput(output.name, mine.data(), mine.size());
      !placed.ok()) {
    return placed;
  }
  for (int round = 0; round < 3; ++round) {
    if (const absl::Status status = (*session)->Replay(); !status.ok()) return status;
  }
  std::printf("'%s' %s after %lld replays begins with %g\n", output.name.c_str(),
              reprise::ShapeToString(output.shape).c_str(),
              static_cast<long long>((*session)->replays()),
              *reinterpret_cast<const float*>(mine.data()));
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  auto runtime = reprise::Runtime::Create();
  if (!runtime.ok()) return Fail(runtime.status());
  reprise::OpStream stream((*runtime)->engine());
  if (const absl::Status status = CaptureOps(stream); !status.ok()) return Fail(status);
  RefuseData(stream);
  if (argc < 2) return 0;
  const absl::Status bound = BindModel(**runtime, argv[1], argc > 2 ? std::atoll(argv[2]) : 16);
  return bound.ok() ? 0 : Fail(bound);
}

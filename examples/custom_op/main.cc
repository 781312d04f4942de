// Ops of the program's own: registered in C++, and loaded from a library with the C interface.
//
//   custom_op [LIBRARY.so]      the library defaults to the one in this folder
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/lazy/capture.h"
#include "runtime/lazy/ops.h"
#include "runtime/ops/custom/op_library.h"
#include "runtime/ops/custom/registered_op.h"
#include "runtime/program/runtime.h"

int main(int argc, char** argv) {
  using reprise::lazy::Op;
  using reprise::lazy::Tensor;

  // Element by element: it stays inside recipes, padded and batched as an Add is.
  const absl::Status registered =
      reprise::RegisterOp({.domain = "example",
                           .name = "Clamp01",
                           .elementwise = true,
                           .shape = reprise::SameShapeAsFirst,
                           .kernel = [](const reprise::KernelContext& context) {
                             const reprise::TensorView& in = context.inputs[0];
                             float* out = context.outputs[0].as<float>();
                             for (int64_t i = 0; i < in.num_elements(); ++i) {
                               out[i] = std::clamp(in.as<float>()[i], 0.0f, 1.0f);
                             }
                             return absl::OkStatus();
                           }});
  if (!registered.ok()) {
    std::fprintf(stderr, "custom_op: %s\n", std::string(registered.message()).c_str());
    return 1;
  }
  const auto loaded = reprise::LoadOpLibrary(argc > 1 ? argv[1] : EXAMPLE_OPS);
  if (!loaded.ok()) {
    std::fprintf(stderr, "custom_op: %s\n", std::string(loaded.status().message()).c_str());
    return 1;
  }
  std::printf("the library brings %s\n", (*loaded)[0].c_str());

  auto runtime = reprise::Runtime::Create();
  if (!runtime.ok()) return 1;
  reprise::OpStream stream((*runtime)->engine());
  const Tensor x = stream.FromVector<float>({4}, {-2, 0.25f, 0.5f, 7});

  // The first one is captured with the nodes around it.
  reprise::CapturedGraph graph;
  {
    reprise::Capture capture(stream, graph);
    capture.Output("y", Op("example.Clamp01", {x * 2}) + 1);
  }
  const absl::Status replayed = graph.status().ok() ? graph.Replay() : graph.status();
  if (!replayed.ok()) {
    std::fprintf(stderr, "custom_op: %s\n", std::string(replayed.message()).c_str());
    return 1;
  }
  const absl::Span<const float> y = graph.output<float>("y");
  std::printf("clamped: %g %g %g %g\n", y[0], y[1], y[2], y[3]);

  // The library's runs on the host, between recipes: outside captures.
  const Tensor reversed = Op("example.Reverse", {x + 1});
  const auto values = reversed.ToVector<float>();
  if (!values.ok()) return 1;
  std::printf("reversed: %g %g %g %g\n", (*values)[0], (*values)[1], (*values)[2], (*values)[3]);
  return 0;
}

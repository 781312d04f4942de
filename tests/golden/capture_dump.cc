// capture_dump MODEL [AXIS=SIZE]...: prints what a capture makes of a model, as numbered graph text.
//
// The first line says how many nodes the model and the captured graph have. Exit code 1 with the
// error on stderr when the model cannot be imported or captured.
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/text.h"
#include "runtime/onnx/importer.h"
#include "runtime/passes/pass.h"
#include "runtime/passes/specialize.h"

namespace reprise {
namespace {

absl::Status Run(const std::string& path, const Binding& binding) {
  ASSIGN_OR_RETURN(ImportedModel model, ImportOnnxFile(path));
  const size_t imported = model.graph.live_nodes();
  RETURN_IF_ERROR(RunLoadPasses(model.graph));
  ASSIGN_OR_RETURN(Graph graph, Specialize(model.graph, binding));
  RETURN_IF_ERROR(RunCapturePasses(graph));
  std::printf("// %zu nodes -> %zu at %s\n%s", imported, graph.live_nodes(),
              binding.ToString().c_str(), Print(graph, {.names = false}).c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  reprise::Binding binding;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    int64_t size = 0;
    if (equals == std::string::npos || !absl::SimpleAtoi(argument.substr(equals + 1), &size)) {
      std::fprintf(stderr, "capture_dump: '%s' is not AXIS=SIZE\n", argv[i]);
      return 2;
    }
    binding.axes[argument.substr(0, equals)] = size;
  }
  if (argc < 2) {
    std::fprintf(stderr, "usage: capture_dump MODEL [AXIS=SIZE]...\n");
    return 2;
  }
  const absl::Status status = reprise::Run(argv[1], binding);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

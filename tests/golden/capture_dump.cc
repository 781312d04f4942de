// capture_dump MODEL [--pack=BATCH,SEQUENCE,LONGEST] [AXIS=SIZE]...: prints the graph that a
// capture makes of a model, as numbered graph text. With --pack its rows are packed first; the axes
// are then tokens and segments.
//
// The first line says how many nodes the model and the captured graph have. Exit code 1 with the
// error on stderr when the model cannot be imported or captured.
#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/onnx/importer.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/pack/pack_tokens.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {
namespace {

absl::Status Run(const std::string& path, const Binding& binding, const PackOptions& pack) {
  ASSIGN_OR_RETURN(ImportedModel model, ImportOnnxFile(path));
  const size_t imported = model.graph.live_nodes();
  RETURN_IF_ERROR(RunLoadPasses(model.graph));
  if (pack.longest > 0) {
    ASSIGN_OR_RETURN(model.graph, PackTokens(model.graph, pack));
  }
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
  reprise::PackOptions pack;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (absl::StartsWith(argument, "--pack=")) {
      const std::vector<std::string> parts =
          absl::StrSplit(absl::StripPrefix(argument, "--pack="), ',');
      if (parts.size() != 3 || !absl::SimpleAtoi(parts[2], &pack.longest)) {
        std::fprintf(stderr, "capture_dump: '%s' is not --pack=BATCH,SEQUENCE,LONGEST\n", argv[i]);
        return 2;
      }
      pack.batch = parts[0];
      pack.sequence = parts[1];
      continue;
    }
    const size_t equals = argument.find('=');
    int64_t size = 0;
    if (equals == std::string::npos || !absl::SimpleAtoi(argument.substr(equals + 1), &size)) {
      std::fprintf(stderr, "capture_dump: '%s' is not AXIS=SIZE\n", argv[i]);
      return 2;
    }
    binding.axes[argument.substr(0, equals)] = size;
  }
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: capture_dump MODEL [--pack=BATCH,SEQUENCE,LONGEST] [AXIS=SIZE]...\n");
    return 2;
  }
  const absl::Status status = reprise::Run(argv[1], binding, pack);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

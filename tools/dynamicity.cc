// reprise dynamicity: how much the shapes of requests vary, what causes it, and what to do.

#include <cstdio>
#include <filesystem>

#include "absl/strings/match.h"
#include "runtime/base/status_macros.h"
#include "tools/command.h"
#include "tools/dynamicity_report.h"

namespace reprise::cli {
namespace {

struct DynamicityFlags {
  ServerFlags server;
  std::string what;
  std::string version;
  std::string file;
  int shapes = 20;
  bool csv = false;
};

// The one optional argument names a file, a server, or a model.
void Resolve(DynamicityFlags& flags) {
  if (flags.what.empty() || !flags.file.empty()) return;
  if (absl::EndsWith(flags.what, ".csv") || absl::EndsWith(flags.what, ".txt")) {
    flags.file = std::move(flags.what);
  } else if (absl::StrContains(flags.what, ':')) {
    flags.server.server = std::move(flags.what);
  } else {
    return;
  }
  flags.what.clear();
}

void Print(const v1::ModelDynamicity& report, const DynamicityFlags& flags) {
  std::printf("%s", (flags.csv ? DynamicityCsv(report)
                               : DynamicityText(report, /*server=*/flags.file.empty()))
                        .c_str());
}

absl::Status RunDynamicity(DynamicityFlags flags) {
  Resolve(flags);
  if (!flags.file.empty()) {
    ASSIGN_OR_RETURN(const ShapeColumns shapes, ReadShapes(flags.file));
    const std::string name = std::filesystem::path(flags.file).filename().string();
    Print(JudgeShapeFile(shapes, name, flags.csv ? 0 : flags.shapes), flags);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  v1::GetDynamicityRequest request;
  request.set_model(flags.what);
  request.set_version(flags.version);
  request.set_most_shapes(flags.csv ? 0 : static_cast<uint32_t>(flags.shapes));
  ASSIGN_OR_RETURN(const v1::GetDynamicityResponse response, client->GetDynamicity(request));
  if (response.models().empty() && !flags.csv) std::printf("no model is ready\n");
  for (int i = 0; i < response.models_size(); ++i) {
    if (i > 0) std::printf("\n");
    Print(response.models(i), flags);
  }
  return absl::OkStatus();
}

}  // namespace

void AddDynamicity(CLI::App& app, Action& action) {
  auto flags = std::make_shared<DynamicityFlags>();
  CLI::App* command = app.add_subcommand(
      "dynamicity", "How much the shapes of requests vary, along which axis, and what to do");
  command->footer(
      "A file has a shape a line (2x128), or as CSV a column an input with shapes, or a column an\n"
      "axis with sizes; a column `count` says how often. Without one the lines are in their order\n"
      "of arrival.\n"
      "Verdict: little, at most 4 shapes count (2 to the power of their entropy); some, at most\n"
      "32, or over 5 % of the requests found no ready recipe; a lot, more.");
  flags->server.Add(*command);
  command->add_option("what", flags->what,
                      "Only this model; or HOST:PORT, another server; or a file (.txt, .csv)");
  command->add_option("--version", flags->version, "Only this version");
  command->add_option("--file", flags->file, "Judge shapes of this file; no server is asked")
      ->type_name("SHAPES");
  command->add_option("--shapes", flags->shapes, "Shapes that are listed, the most frequent")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->type_name("N");
  command->add_flag("--csv", flags->csv, "Only the table, all of it, as CSV");
  command->callback([flags, &action] { action = [flags] { return RunDynamicity(*flags); }; });
}

}  // namespace reprise::cli

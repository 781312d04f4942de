// reprise dynamicity: how much the shapes of requests vary, the causes, and advice.

#include <cstdio>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "command_line/text_width.h"
#include "runtime/base/status_macros.h"
#include "tools/command.h"
#include "tools/files/dataset.h"
#include "tools/reports/dynamicity_report.h"

namespace reprise::cli {
namespace {

struct DynamicityFlags {
  ServerFlags server;
  std::string what;
  std::string version;
  std::string file;
  std::string dataset;
  BatchOptions batches;
  std::string pad = "longest";
  std::string crop;  // 300x300
  int shapes = 20;
  bool csv = false;
  bool json = false;
};

// Resolves the one optional argument, which names a file, a server, or a model.
void Resolve(DynamicityFlags& flags) {
  if (flags.what.empty() || !flags.file.empty()) return;
  if (absl::EndsWith(flags.what, ".csv") || absl::EndsWith(flags.what, ".txt")) {
    flags.file = std::move(flags.what);
  } else if (absl::EndsWith(flags.what, ".npz") || absl::EndsWith(flags.what, ".npy") ||
             absl::EndsWith(flags.what, ".jsonl") || std::filesystem::is_directory(flags.what)) {
    flags.dataset = std::move(flags.what);
  } else if (absl::StrContains(flags.what, ':')) {
    flags.server.server = std::move(flags.what);
  } else {
    return;
  }
  flags.what.clear();
}

void Print(const v1::ModelDynamicity& report, const DynamicityFlags& flags) {
  const bool server = flags.file.empty() && flags.dataset.empty();
  if (flags.csv) {
    std::printf("%s", DynamicityCsv(report).c_str());
  } else {
    command_line::Print(DynamicityText(report, server));
  }
}

absl::Status PrintShapes(const ShapeColumns& shapes, const std::string& path,
                         const DynamicityFlags& flags) {
  const std::string name = std::filesystem::path(path).filename().string();
  const v1::ModelDynamicity report =
      JudgeShapeFile(shapes, name.empty() ? path : name, flags.csv ? 0 : flags.shapes);
  if (flags.json) return PrintJson(report);
  Print(report, flags);
  return absl::OkStatus();
}

// Returns the crop that `text` names: "300x300".
absl::StatusOr<std::vector<int64_t>> ParseCrop(const std::string& text) {
  std::vector<int64_t> crop;
  if (text.empty()) return crop;
  for (const absl::string_view part : absl::StrSplit(text, 'x')) {
    if (!absl::SimpleAtoi(part, &crop.emplace_back()) || crop.back() < 1) {
      return absl::InvalidArgumentError(absl::StrCat("--crop '", text, "' is not HEIGHTxWIDTH"));
    }
  }
  return crop;
}

absl::Status RunDynamicity(DynamicityFlags flags) {
  Resolve(flags);
  if (!flags.file.empty()) {
    ASSIGN_OR_RETURN(const ShapeColumns shapes, ReadShapes(flags.file));
    return PrintShapes(shapes, flags.file, flags);
  }
  if (!flags.dataset.empty()) {
    ASSIGN_OR_RETURN(flags.batches.pad, ParsePad(flags.pad, flags.batches.buckets));
    ASSIGN_OR_RETURN(flags.batches.crop, ParseCrop(flags.crop));
    ASSIGN_OR_RETURN(const Dataset dataset, ReadDataset(flags.dataset));
    return PrintShapes(BatchesOf(dataset, flags.batches), flags.dataset, flags);
  }
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  v1::GetDynamicityRequest request;
  request.set_model(flags.what);
  request.set_version(flags.version);
  request.set_most_shapes(flags.csv ? 0 : static_cast<uint32_t>(flags.shapes));
  ASSIGN_OR_RETURN(const v1::GetDynamicityResponse response, client->GetDynamicity(request));
  if (flags.json) return PrintJson(response);
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
      "dynamicity", "Show how much the shapes of requests vary, along which axis, and the remedy");
  command->footer(
      "A file has a shape a line (2x128), or as CSV a column an input with shapes, or a column an\n"
      "axis with sizes; a column `count` says how often. Without one the lines are in their order\n"
      "of arrival.\n"
      "A data set is .npz, .npy or .jsonl, or a folder of WAV, PNG or JPEG files, and is judged "
      "as\n"
      "the batches that --batch, --pad and --crop make of it.\n"
      "Verdict: little, at most 4 shapes count (2 to the power of their entropy); some, at most\n"
      "32, or over 5 % of the requests found no ready recipe; a lot, more, or over 15 % found "
      "none.\n"
      "Without a server, lines are replayed in their order against recipes of exact shapes, of\n"
      "which 32 are kept.");
  flags->server.Add(*command);
  command->add_option("what", flags->what,
                      "Only this model; or HOST:PORT, another server; or a file (.txt, .csv)");
  command->add_option("--version", flags->version, "Only this version");
  AddOption(*command, "--file", flags->file, "SHAPES",
            "Judge shapes of this file; no server is asked");
  AddOption(*command, "--shapes", flags->shapes, "N",
            "Number of shapes to list, the most frequent "
            "first")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  AddOption(*command, "--dataset", flags->dataset, "DIR|FILE",
            "Judge the batches of this data set");
  command->add_option("--batch", flags->batches.batch, "Samples in each batch of the data set")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  command
      ->add_option("--pad", flags->pad,
                   "longest: pad to the longest of the batch; buckets:N: to one of N sizes; none")
      ->capture_default_str();
  AddOption(*command, "--crop", flags->crop, "HEIGHTxWIDTH",
            "Cut or pad the last dims of every sample to this");
  command->add_flag("--csv", flags->csv, "Print only the whole table, as CSV");
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunDynamicity(*flags); }; });
}

}  // namespace reprise::cli

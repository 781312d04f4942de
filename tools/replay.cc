#include "tools/replay.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/table.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/profile.h"
#include "runtime/json/json_writer.h"
#include "tools/command.h"
#include "tools/detached_frame.h"
#include "tools/local_engine.h"
#include "tools/serve/made_up_request.h"

namespace reprise::cli {
namespace {

bool IsStoredRecipe(const std::string& path) { return absl::EndsWith(path, ".rps"); }

absl::StatusOr<FilledFrame> FillFromModel(const ReplayOptions& options, LocalEngine& local,
                                          Stream& stream) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Model> model,
                   local.LoadToStudy(options.source, options.precision));
  ASSIGN_OR_RETURN(const RequestSizes target, SizesOf(*model, options.bucket));
  ASSIGN_OR_RETURN(const MadeUpRequest made, MakeUpRequest(*model, target.sizes, options.max_id));
  std::fprintf(options.json ? stderr : stdout, "%s at %s%s, compiled here, with made-up inputs\n",
               options.source.c_str(),
               absl::StrJoin(target.sizes, ", ", absl::PairFormatter(" ")).c_str(),
               target.packed ? ", packed" : "");
  return local.engine.Fill(*model, made.request, stream, target.packed);
}

absl::StatusOr<FilledFrame> FillFromRecipe(const ReplayOptions& options, LocalEngine& local,
                                           Stream& stream) {
  ASSIGN_OR_RETURN(DetachedFrame detached, FillDetached(options.source, options.weights,
                                                        local.device, local.clock, stream));
  std::FILE* const notes = options.json ? stderr : stdout;
  std::fprintf(notes, "stored recipe of %s, with made-up inputs%s\n", detached.origin.c_str(),
               options.weights.empty() ? " and weights: values mean nothing" : "");
  if (!detached.warning.empty()) std::fprintf(notes, "%s\n", detached.warning.c_str());
  return std::move(detached.filled);
}

const char* RoleName(OperandNote::Role role) {
  switch (role) {
    case OperandNote::Role::kInput:
      return "input";
    case OperandNote::Role::kOutput:
      return "output";
    case OperandNote::Role::kWorkspace:
      return "workspace";
  }
  return "?";
}

void PrintOperands(const Recipe& recipe, int index) {
  const Launch& launch = recipe.launches[static_cast<size_t>(index)];
  const std::vector<OperandNote>& notes = recipe.operand_notes[static_cast<size_t>(index)];
  Table table({{"operand"}, {"space"}, {"offset", kRight}, {"bytes", kRight}, {"dtype"}, {"is"}});
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const Operand& operand = launch.operands[i];
    if (operand.space == Space::kNone) {
      table.AddRow({RoleName(notes[i].role), "-", "-", "-", "-", "left out"});
      continue;
    }
    const bool parameter = operand.space == Space::kParameter;
    table.AddRow(
        {RoleName(notes[i].role), std::string(SpaceName(operand.space)),
         parameter ? absl::StrCat("slot ", operand.offset) : absl::StrCat(recipe.OffsetOf(operand)),
         absl::StrCat(notes[i].bytes),
         notes[i].dtype == DType::kUndefined ? "-" : std::string(DTypeName(notes[i].dtype)),
         parameter ? Shorten(recipe.parameters[operand.offset]->text(), 60) : ""});
  }
  std::printf("%s\n", table.Text().c_str());
}

void PrintTimes(const Launch& launch, std::vector<int64_t> ns) {
  std::sort(ns.begin(), ns.end());
  const auto median = static_cast<double>(std::max<int64_t>(ns[ns.size() / 2], 1));
  std::string text = FormatText("%.1f us in the median of %d runs on one thread, %.1f to %.1f",
                                median * 1e-3, ns.size(), static_cast<double>(ns.front()) * 1e-3,
                                static_cast<double>(ns.back()) * 1e-3);
  if (launch.work.flops > 0) AppendText(&text, "; %.1f GF/s", launch.work.flops / median);
  if (launch.work.bytes > 0) AppendText(&text, "; %.1f GB/s", launch.work.bytes / median);
  std::printf("%s\n", text.c_str());
}

// Returns the bytes of an output as numbers.
std::vector<double> ValuesOf(const std::string& bytes, DType dtype) {
  const auto count = static_cast<int64_t>(bytes.size() / DTypeSize(dtype));
  return Tensor::Make(
             dtype, {count},
             [&](void* data) { std::copy(bytes.begin(), bytes.end(), static_cast<char*>(data)); })
      .ToDoubles();
}

// Prints a line for each eight elements, which begins with the place of the first of them.
void PrintValues(const std::string& bytes, DType dtype) {
  constexpr int64_t kPerLine = 8;
  const std::vector<double> values = ValuesOf(bytes, dtype);
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    if (i % kPerLine == 0) std::printf("%s%8lld:", i == 0 ? "" : "\n", static_cast<long long>(i));
    std::printf(" %.9g", values[static_cast<size_t>(i)]);
  }
  std::printf("\n");
}

void PrintOutputs(const LaunchRun& run, const std::vector<OperandNote>& notes) {
  size_t next = 0;
  for (const OperandNote& note : notes) {
    if (note.role != OperandNote::Role::kOutput) continue;
    const std::string& bytes = run.outputs[next++];
    std::printf("\noutput %zu: %s\n", next - 1, bytes.empty() ? "left out" : "");
    if (!bytes.empty()) PrintValues(bytes, note.dtype);
  }
}

void WriteLaunch(const Recipe& recipe, size_t i, JsonWriter& json) {
  const Launch& launch = recipe.launches[i];
  json.Member("launch", i);
  json.Member("kernel", launch.kernel);
  json.Member("node", launch.node);
  json.Member("shapes", launch.detail);
  json.Member("reference", launch.reference);
  json.Member("foreign", launch.foreign);
}

void WriteOperands(const Recipe& recipe, size_t i, JsonWriter& json) {
  const Launch& launch = recipe.launches[i];
  json.Array("operands", [&] {
    for (size_t k = 0; k < launch.operands.size(); ++k) {
      const Operand& operand = launch.operands[k];
      const OperandNote& note = recipe.operand_notes[i][k];
      json.Object([&] {
        json.Member("role", RoleName(note.role));
        json.Member("space", SpaceName(operand.space));
        if (operand.space == Space::kNone) return;
        const bool parameter = operand.space == Space::kParameter;
        json.Member("offset", parameter ? static_cast<uint64_t>(operand.offset)
                                        : static_cast<uint64_t>(recipe.OffsetOf(operand)));
        json.Member("bytes", note.bytes);
        if (note.dtype != DType::kUndefined) json.Member("dtype", DTypeName(note.dtype));
        if (parameter) json.Member("is", recipe.parameters[operand.offset]->text());
      });
    }
  });
}

std::string ListJson(const Recipe& recipe) {
  JsonWriter json(JsonForm::kIndented);
  json.Object([&] {
    json.Member("recipe", recipe.key.hex());
    json.Array("launches", [&] {
      for (size_t i = 0; i < recipe.launches.size(); ++i) {
        json.Object([&] { WriteLaunch(recipe, i, json); });
      }
    });
  });
  return json.Take();
}

std::string LaunchJson(const ReplayOptions& options, const Recipe& recipe, LaunchRun run) {
  const auto index = static_cast<size_t>(options.launch);
  std::sort(run.ns.begin(), run.ns.end());
  JsonWriter json(JsonForm::kIndented);
  json.Object([&] {
    json.Member("recipe", recipe.key.hex());
    WriteLaunch(recipe, index, json);
    WriteOperands(recipe, index, json);
    json.Member("runs", run.ns.size());
    json.Member("median_us", static_cast<double>(run.ns[run.ns.size() / 2]) * 1e-3);
    json.Member("least_us", static_cast<double>(run.ns.front()) * 1e-3);
    json.Member("most_us", static_cast<double>(run.ns.back()) * 1e-3);
    if (!options.values) return;
    json.Array("outputs", [&] {
      size_t next = 0;
      for (const OperandNote& note : recipe.operand_notes[index]) {
        if (note.role != OperandNote::Role::kOutput) continue;
        const std::string& bytes = run.outputs[next++];
        json.Array([&] {
          if (bytes.empty()) return;
          for (const double value : ValuesOf(bytes, note.dtype)) json.Value(value);
        });
      }
    });
  });
  return json.Take();
}

absl::Status Show(const ReplayOptions& options, const FilledFrame& filled, const Clock& clock) {
  const Recipe& recipe = *filled.recipe;
  if (options.json && options.launch < 0) {
    std::printf("%s", ListJson(recipe).c_str());
    return absl::OkStatus();
  }
  if (options.launch < 0) {
    std::printf("%s", recipe.Dump().c_str());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const LaunchRun run,
                   RunLaunch(recipe, filled.frame, options.launch, options.repeats, clock));
  if (options.json) {
    std::printf("%s", LaunchJson(options, recipe, run).c_str());
    return absl::OkStatus();
  }
  const Launch& launch = recipe.launches[static_cast<size_t>(options.launch)];
  std::printf("\nlaunch %d of %zu: %s%s, %s\nnode %s\n\n", options.launch, recipe.launches.size(),
              launch.kernel.c_str(), launch.foreign ? " (a foreign library)" : "",
              launch.detail.empty() ? "without a shape" : launch.detail.c_str(),
              launch.node.c_str());
  PrintOperands(recipe, options.launch);
  PrintTimes(launch, run.ns);
  if (options.values) PrintOutputs(run, recipe.operand_notes[static_cast<size_t>(options.launch)]);
  if (const DataError* error = filled.errors->get()) {
    std::printf("\na made-up input was refused, and the kernel took 0 in its place: %s\n",
                RangeText(*error).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplayLaunch(const ReplayOptions& options) {
  LocalEngine local(options.max_isa);
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, Stream::Create({.cores = &local.cores}));
  const auto fill = IsStoredRecipe(options.source) ? FillFromRecipe : FillFromModel;
  ASSIGN_OR_RETURN(const FilledFrame filled, fill(options, local, *stream));
  return Show(options, filled, local.clock);
}

void AddReplay(CLI::App& app, Action& action) {
  struct Flags {
    ReplayOptions options;
    std::string max_isa = std::string(IsaName(kEveryIsa));
    std::string precision = std::string(PrecisionName(Precision::kExact));
  };
  const auto flags = std::make_shared<Flags>();
  ReplayOptions& options = flags->options;
  CLI::App* command =
      app.add_subcommand("replay", "Run one launch of a recipe by itself; no server");
  command->footer(
      "A model is compiled for the bucket. A stored recipe runs with made-up weights, which is\n"
      "enough to time it, or with the ones of --weights. The launches before it run once, so that "
      "its\n"
      "operands hold the same values as in a replay. Without --launch the launches are listed.");
  AddOption(*command, "source", options.source, "RECIPE|MODEL.onnx",
            "Path of a model.onnx, or of a recipe-….rps in the folder of --recipe-cache")
      ->required();
  AddOption(*command, "--launch", options.launch, "N",
            "Number of the launch, as `reprise dump` shows it")
      ->check(CLI::NonNegativeNumber);
  AddOption(*command, "--bucket", options.bucket, "BUCKET",
            "For a model: bucket (b1_s128) or sizes (batch=1,sequence=100)");
  AddOption(*command, "--weights", options.weights, "MODEL.onnx", "For a stored recipe: its model");
  AddOption(*command, "--repeats", options.repeats, "N",
            "Times to run the launch; the median is printed")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_flag("--values", options.values,
                    "Print the results of the launch, element by "
                    "element");
  AddJson(*command, options.json);
  AddMaxIsa(*command, flags->max_isa, "Highest instruction set to use, as for reprised");
  AddPrecision(*command, flags->precision, "For a model: as `reprise.precision` of config.pbtxt");
  AddOption(*command, "--max-id", options.max_id, "N", "For a model: largest random id")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->callback([flags, &action] {
    const bool stored = IsStoredRecipe(flags->options.source);
    if (stored && !flags->options.bucket.empty()) {
      throw CLI::ValidationError("--bucket", "a stored recipe has its bucket already");
    }
    if (!stored && !flags->options.weights.empty()) {
      throw CLI::ValidationError("--weights", "a model has its own weights");
    }
    flags->options.max_isa = *ParseIsa(flags->max_isa);
    flags->options.precision = *ParsePrecision(flags->precision);
    action = [flags] { return ReplayLaunch(flags->options); };
  });
}

}  // namespace reprise::cli

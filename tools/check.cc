// reprise check: can this model be served, and what will it cost? Needs no server.

#include <cstdio>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "command_line/text_width.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/kit/reasons.h"
#include "runtime/ops/custom/op_library.h"
#include "server/hub/generation_files.h"
#include "server/hub/load_texts.h"
#include "server/hub/model_file.h"
#include "tools/cache_error.h"
#include "tools/command.h"
#include "tools/local_engine.h"
#include "tools/precision.h"
#include "tools/reports/check_json.h"
#include "tools/reports/check_report.h"
#include "tools/reports/op_matrix.h"

namespace reprise::cli {
namespace {

struct CheckFlags {
  std::string path;
  bool ops = false;
  bool precision = false;
  std::string precision_ops;
  std::string precision_goal;
  std::string bucket;  // that --precision measures at
  std::string inputs_file;
  std::vector<std::string> op_libraries;
  std::string variant;  // "int8": the file model_int8.onnx of a folder
  std::string max_isa = std::string(IsaName(kEveryIsa));
  std::vector<std::string> buckets;  // "sequence=16,32"
  std::vector<std::string> ranks;    // "x=3"
  int64_t max_batch_tokens = ModelOptions().max_batch_tokens;
  std::string packing = "auto";
  std::vector<std::string> promote;  // names; "auto" among them
  int streams = AvailableCpus();
  bool json = false;
  std::string metrics_file;  // empty: none
};

// Adds "sequence=16,32" to `options`; returns the fault, or "".
std::string AddBuckets(const std::string& text, ModelOptions& options) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return absl::StrCat("'", text, "' has no '='");
  std::vector<int64_t>& sizes = options.buckets[text.substr(0, equals)];
  for (const absl::string_view size : absl::StrSplit(text.substr(equals + 1), ',')) {
    if (!absl::SimpleAtoi(size, &sizes.emplace_back()) || sizes.back() < 1) {
      return absl::StrCat("'", text, "': '", size, "' is not a size");
    }
  }
  return "";
}

// Adds "x=3" to `ranks`; returns the fault, or "".
std::string AddRank(const std::string& text, InputRanks& ranks) {
  const size_t equals = text.rfind('=');
  int64_t rank = -1;
  const bool is_rank =
      equals != std::string::npos && absl::SimpleAtoi(text.substr(equals + 1), &rank);
  if (!is_rank || rank < 0) return absl::StrCat("'", text, "' is not INPUT=RANK");
  ranks[text.substr(0, equals)] = rank;
  return "";
}

// Says of inputs without a declared rank at which one the report shows them.
void PrintRanks(const Model& model, const std::vector<std::string>& said) {
  InputRanks asked;
  for (const std::string& text : said) AddRank(text, asked);
  for (const auto& [name, rank] : model.options().ranks) {
    command_line::Print(absl::StrCat(
        "\ninput '", name, "' has no declared rank, each request decides it: shown at rank ", rank,
        asked.contains(name) ? "" : "; --rank shows another", "\n"));
  }
}

// Returns the model file that `flags` name: themselves, or the one in their folder.
absl::StatusOr<std::string> ModelPath(const CheckFlags& flags) {
  const std::filesystem::path path(flags.path);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return flags.path;
  // A file by that name may be a folder itself.
  if (IsModelName(path.string())) return ResolveModelFile(path).string();
  ASSIGN_OR_RETURN(const std::string file, FindModelFile(path, flags.variant));
  return (path / file).string();
}

// Prints the facts about texts in the folder, and what a server would do with them.
void PrintTexts(TextLoad& texts, const Model& model) {
  const std::shared_ptr<const TextModel> text = texts.Finish(model);
  if (texts.note().empty()) return;
  command_line::Print(absl::StrCat("\n", texts.note(), "\n"));
  if (text == nullptr) return;
  if (text->max_tokens() > 0) {
    std::printf("texts have at most %lld tokens (%s)\n", static_cast<long long>(text->max_tokens()),
                text->package().max_tokens_from.c_str());
  }
  for (const auto& [name, prompt] : text->package().prompts) {
    command_line::Print(absl::StrCat("prompt ", name, ": \"", prompt, "\"\n"));
  }
  if (!text->package().labels.empty()) {
    command_line::Print(
        absl::StrCat("labels: ", absl::StrJoin(text->package().labels, ", "), "\n"));
  }
}

absl::StatusOr<PrecisionGoal> GoalOf(const std::string& text) {
  if (text.empty()) return PrecisionGoal{.fast = true};
  absl::StatusOr<PrecisionGoal> goal = PrecisionGoal::Parse(text);
  if (goal.ok()) return goal;
  return absl::InvalidArgumentError(
      absl::StrCat("--precision-goal \"", text, "\" ", goal.status().message()));
}

absl::Status RunCheck(const CheckFlags& flags) {
  if (flags.ops) {
    std::fputs(flags.json ? OpMatrixJson().c_str() : OpMatrixText().c_str(), stdout);
    return absl::OkStatus();
  }
  for (const std::string& file : flags.op_libraries) {
    RETURN_IF_ERROR(LoadOpLibrary(file).status());
  }
  ASSIGN_OR_RETURN(const std::string path, ModelPath(flags));
  if (flags.precision) {
    ASSIGN_OR_RETURN(const PrecisionGoal goal, GoalOf(flags.precision_goal));
    return RunPrecision({.path = path,
                         .rules = flags.precision_ops,
                         .goal = goal,
                         .bucket = flags.bucket,
                         .inputs_file = flags.inputs_file,
                         .max_isa = *ParseIsa(flags.max_isa),
                         .json = flags.json});
  }
  LocalEngine local(*ParseIsa(flags.max_isa), AvailableCpus(), flags.metrics_file);
  ModelOptions options = {.id = {.name = std::filesystem::path(flags.path).filename().string()},
                          .path = path,
                          .max_batch_tokens = flags.max_batch_tokens};
  for (const std::string& text : flags.buckets) AddBuckets(text, options);
  for (const std::string& text : flags.ranks) AddRank(text, options.ranks);
  // As a server does it: named buckets are there to be padded to.
  if (flags.packing == "auto" && flags.buckets.empty()) options.packing = PackingMode::kAuto;
  for (const std::string& name : flags.promote) {
    if (name == "auto") {
      options.promote_found = true;
    } else {
      options.promote.push_back(name);
    }
  }
  TextLoad texts(path, {});
  options.extend = [&](ImportedModel& imported) { return texts.Extend(imported); };
  const auto model = local.Load(std::move(options));
  if (!model.ok()) {
    const std::vector<std::string> reasons = ReasonsOf(model.status());
    if (flags.json) {
      std::printf("%s", RefusedJson(flags.path, reasons).c_str());
    } else {
      std::printf("%s cannot be served:\n", flags.path.c_str());
      for (const std::string& reason : reasons) {
        command_line::Print(absl::StrCat("  ", reason, "\n"));
      }
    }
    return absl::Status(model.status().code(),
                        absl::StrCat(flags.path, " cannot be served, for ", reasons.size(),
                                     reasons.size() == 1 ? " reason" : " reasons"));
  }
  if (flags.json) {
    texts.Finish(**model);
    ASSIGN_OR_RETURN(const std::string report,
                     CheckJson(local.engine, **model, flags.path, texts.note(), flags.streams));
    std::printf("%s", report.c_str());
  } else {
    ASSIGN_OR_RETURN(const std::string report, CheckReport(local.engine, **model, flags.streams,
                                                           ReadGenerationFiles(path).context));
    command_line::Print(absl::StrCat(flags.path, " can be served\n\n", report));
    PrintRanks(**model, flags.ranks);
    if (const std::string text = CacheErrorText(local.engine, *model); !text.empty()) {
      command_line::Print(absl::StrCat("\n", text));
    }
    PrintTexts(texts, **model);
  }
  return flags.metrics_file.empty() ? absl::OkStatus() : local.engine.WriteMetrics();
}

}  // namespace

void AddCheck(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* command = app.add_subcommand(
      "check", "Say whether a model can be served, and at which cost; no server");
  command->footer(
      "Exit 0 if it can, 1 if not, with every reason: the same that a server would give.\n"
      "Loads the model with its weights and measures its certificate, as a server does.");
  CLI::Option* model = AddOption(*command, "model", flags->path, "MODEL.onnx",
                                 "Path of a model.onnx, or of a folder that has one");
  CLI::Option* ops =
      command->add_flag("--ops", flags->ops,
                        "Print the facts known about each op, and the missing ones; needs no "
                        "model");
  ops->excludes(model);
  command->add_option("--variant", flags->variant,
                      "Which file of the folder: int8 takes model_int8.onnx");
  AddMaxIsa(*command, flags->max_isa, "Highest instruction set to use, as for reprised");
  AddOption(*command, "--buckets", flags->buckets, "AXIS=SIZES",
            "AXIS=SIZES: buckets of an axis, as `reprise.buckets.AXIS` of config.pbtxt")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        ModelOptions ignored;
        return AddBuckets(text, ignored);
      });
  AddOption(*command, "--rank", flags->ranks, "INPUT=RANK",
            "INPUT=RANK: rank of an input whose shape the file does not declare")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        InputRanks ignored;
        return AddRank(text, ignored);
      });
  command
      ->add_option("--max-batch-tokens", flags->max_batch_tokens,
                   "As `reprise.max_batch_tokens` of config.pbtxt")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--packing", flags->packing,
                   "As `reprise.packing` of config.pbtxt: auto (unless --buckets are given), off")
      ->check(CLI::IsMember({"auto", "off"}));
  AddOption(*command, "--promote", flags->promote, "NAME,...",
            "Constants that become optional inputs, as `reprise.promote` of config.pbtxt")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddJson(*command, flags->json);
  AddOption(*command, "--metrics-file", flags->metrics_file, "FILE",
            "Write a log of the compiles as JSON, in the form of reprised --metrics-file");
  CLI::Option* precision = command->add_flag(
      "--precision", flags->precision,
      "Print which nodes can round, which of them a goal lets round, their error and gain, and the "
      "error that each choice makes");
  AddOption(*command, "--precision-goal", flags->precision_goal, "GOAL",
            "The goal that nodes are chosen by, as `reprise.precision` of config.pbtxt: "
            "auto:COSINE, fast or fast:COSINE; fast if not given")
      ->needs(precision);
  command
      ->add_option("--precision-ops", flags->precision_ops,
                   "A choice to measure as well, as `reprise.precision_ops` of config.pbtxt; @FILE "
                   "is next to the model")
      ->needs(precision);
  AddOption(*command, "--bucket", flags->bucket, "BUCKET",
            "Sizes to measure at: a bucket (b1_s128), or sizes (batch=1,sequence=100)")
      ->needs(precision);
  command
      ->add_option("--inputs", flags->inputs_file,
                   "JSON with the inputs to measure with, as for infer; random if not given")
      ->needs(precision)
      ->check(CLI::ExistingFile);
  command
      ->add_option("--op-library", flags->op_libraries,
                   "A shared library with ops that the model names, as for reprised")
      ->allow_extra_args(false)
      ->check(CLI::ExistingFile);
  command->add_option("--streams", flags->streams, "Replays at a time, for the estimate of memory")
      ->check(CLI::PositiveNumber);
  command->callback([flags, &action] {
    if (flags->path.empty() && !flags->ops) throw CLI::RequiredError("model or --ops");
    action = [flags] { return RunCheck(*flags); };
  });
}

}  // namespace reprise::cli

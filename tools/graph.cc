#include "tools/graph.h"

#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/onnx/importer.h"
#include "runtime/passes/pipeline.h"
#include "runtime/passes/specialize/specialize.h"
#include "tools/command.h"
#include "tools/local_engine.h"
#include "tools/serve/made_up_request.h"

namespace reprise::cli {
namespace {

// Steps of the walk that are no passes.
constexpr char kImport[] = "import";
constexpr char kLoad[] = "load";
constexpr char kPackTokens[] = "pack_tokens";
constexpr char kSpecialize[] = "specialize";

constexpr char kCaptureHint[] = "; capture passes run with --bucket or --sizes";
constexpr char kLoadHint[] = "; load passes are seen without --bucket and --sizes";

// INVALID_ARGUMENT where the walk has no pass that `without` names: leaving it out would show
// nothing.
absl::Status CheckWithout(const GraphOptions& options) {
  const bool load = options.bucket.empty();
  const std::vector<std::string> passes = load ? LoadPassNames() : CapturePassNames();
  for (const std::string& name : options.without) {
    if (absl::c_linear_search(passes, name)) continue;
    return absl::InvalidArgumentError(absl::StrCat("this walk has no pass '", name, "', only ",
                                                   absl::StrJoin(passes, ", "),
                                                   load ? kCaptureHint : kLoadHint));
  }
  return absl::OkStatus();
}

// The steps that a walk has taken, and the graph after one of them.
class Steps {
 public:
  explicit Steps(const GraphOptions& options) : options_(options) {}

  void Add(const PassRun& run, const Graph& graph) {
    const int times = ++times_[std::string(run.pass)];
    names_.push_back(times == 1 ? std::string(run.pass) : absl::StrCat(run.pass, ":", times));
    nodes_ = graph.live_nodes();
    const bool wanted = names_.back() == options_.after;
    found_ = found_ || wanted;
    if (options_.json) {
      nlohmann::ordered_json& step = steps_.emplace_back();
      step = {{"step", names_.back()},
              {"changed", run.changed},
              {"nodes", nodes_},
              {"ms", static_cast<double>(run.ns) * 1e-6}};
      if (wanted || (options_.each && run.changed)) step["graph"] = Print(graph);
      return;
    }
    if (options_.each) PrintStep(run, graph);
    if (wanted) {
      std::printf("// %zu nodes after %s\n%s", nodes_, options_.after.c_str(),
                  Print(graph).c_str());
    }
  }

  // Prints the last graph, where that was asked for; an error where the step never came. `sizes`
  // are
  // "" where they are symbolic.
  absl::Status Finish(const Graph& graph, const std::string& sizes) const {
    const bool shows_last = !options_.each && options_.after.empty();
    if (options_.json && (options_.each || found_ || shows_last)) {
      nlohmann::ordered_json json = {
          {"model", options_.path}, {"sizes", sizes}, {"steps", steps_}, {"nodes", nodes_}};
      if (shows_last) json["graph"] = Print(graph);
      return PrintJson(json);
    }
    if (options_.each || found_) return absl::OkStatus();
    if (shows_last) {
      const std::string at = sizes.empty() ? " with symbolic shapes" : absl::StrCat(" at ", sizes);
      std::printf("// %zu nodes%s\n%s", nodes_, at.c_str(), Print(graph).c_str());
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no step '", options_.after, "' on this walk, which has ",
        absl::StrJoin(names_, ", "), options_.bucket.empty() ? kCaptureHint : kLoadHint));
  }

  PipelineOptions PassOptions() const {
    return {.disabled = options_.without, .precision = options_.precision};
  }
  PassWatcher Watcher() {
    return [this](const PassRun& run, const Graph& graph) { Add(run, graph); };
  }

 private:
  void PrintStep(const PassRun& run, const Graph& graph) const {
    if (!run.changed) {
      std::printf("// %s changes nothing\n", names_.back().c_str());
      return;
    }
    std::printf("// %zu nodes after %s, which took %.3f ms\n%s", nodes_, names_.back().c_str(),
                static_cast<double>(run.ns) * 1e-6, Print(graph).c_str());
  }

  const GraphOptions& options_;
  std::map<std::string, int> times_;  // that a pass has run
  std::vector<std::string> names_;
  nlohmann::ordered_json steps_ = nlohmann::ordered_json::array();
  size_t nodes_ = 0;
  bool found_ = false;
};

// Prints the graph that recipes are compiled from, before their sizes are known.
absl::Status PrintSymbolic(const GraphOptions& options) {
  Steps steps(options);
  ASSIGN_OR_RETURN(ImportedModel model, ImportOnnxFile(options.path));
  steps.Add({.pass = kImport, .changed = true}, model.graph);
  // Without a request that overrides them, initialisers are constants.
  for (const ModelIo& input : model.inputs) {
    const ValueId value = model.graph.FindValue(input.name);
    if (input.optional && value != kNone) model.graph.value(value).overridable = false;
  }
  RETURN_IF_ERROR(WatchLoadPasses(model.graph, steps.PassOptions(), steps.Watcher()));
  return steps.Finish(model.graph, "");
}

// Returns the key of the recipe that `options.bucket` names.
absl::StatusOr<RecipeKey> KeyOf(const Model& model, const std::string& bucket) {
  ASSIGN_OR_RETURN(const RequestSizes sizes, SizesOf(model, bucket));
  ASSIGN_OR_RETURN(const MadeUpRequest made, MakeUpRequest(model, sizes.sizes, /*max_id=*/1));
  ASSIGN_OR_RETURN(const RequestShape shape, model.Measure(made.request));
  BatchTarget target = {.sizes = shape.sizes, .packed = sizes.packed};
  if (sizes.packed) {
    target.sizes = {sizes.bucket_tokens, model.packing()->SegmentsOf(sizes.bucket_tokens)};
  }
  return model.KeyAt(target, shape, nullptr);
}

absl::Status PrintSpecialized(const GraphOptions& options) {
  Steps steps(options);
  LocalEngine local(kEveryIsa);
  ASSIGN_OR_RETURN(const std::shared_ptr<Model> model,
                   local.LoadToStudy(options.path, options.precision));
  ASSIGN_OR_RETURN(const RecipeKey key, KeyOf(*model, options.bucket));
  const bool packed = key.packing == kPacked;
  const Graph& symbolic = Engine::SymbolicGraph(*model, packed);
  steps.Add({.pass = packed ? kPackTokens : kLoad, .changed = true}, symbolic);
  const int64_t start = local.clock.NowNs();
  ASSIGN_OR_RETURN(Graph graph, Specialize(symbolic, key.binding));
  steps.Add({.pass = kSpecialize, .changed = true, .ns = local.clock.NowNs() - start}, graph);
  RETURN_IF_ERROR(WatchCapturePasses(graph, steps.PassOptions(), steps.Watcher()));
  return steps.Finish(graph, key.binding.ToString());
}

// Returns "" where `name` is a pass, or a step where steps are asked for; else the fault.
std::string CheckName(const std::string& name, bool steps) {
  const std::vector<std::string> passes = PassNames();
  std::set<std::string> known(passes.begin(), passes.end());
  if (steps) known.insert({kImport, kLoad, kPackTokens, kSpecialize});
  const std::pair<std::string, std::string> parts = absl::StrSplit(name, absl::MaxSplits(':', 1));
  if (known.contains(steps ? parts.first : name)) return "";
  return absl::StrCat("there is no ", steps ? "step '" : "pass '", name, "', only ",
                      absl::StrJoin(known, ", "));
}

}  // namespace

absl::Status PrintGraph(const GraphOptions& options) {
  RETURN_IF_ERROR(CheckWithout(options));
  return options.bucket.empty() ? PrintSymbolic(options) : PrintSpecialized(options);
}

void AddGraph(CLI::App& app, Action& action) {
  struct Flags {
    GraphOptions options;
    std::string precision = std::string(PrecisionName(Precision::kExact));
  };
  const auto flags = std::make_shared<Flags>();
  GraphOptions& options = flags->options;
  CLI::App* command =
      app.add_subcommand("graph", "Show a model's graph as text, after any pass; no server");
  command->footer(
      "Without sizes the load passes run, over symbolic shapes. With them the capture passes run,\n"
      "and the graph is the one that a recipe of these sizes gets its kernels for. A line that\n"
      "begins with // is not part of the graph. A pass that runs again is a step of its own:\n"
      "canonicalize:2.");
  AddOption(*command, "model", options.path, "MODEL.onnx", "Path of a model.onnx")->required();
  CLI::Option* bucket = AddOption(*command, "--bucket", options.bucket, "BUCKET",
                                  "A bucket of the model, as b1_s128 or t512");
  AddOption(*command, "--sizes", options.bucket, "AXIS=SIZE,...",
            "A size for each axis, as batch=1,sequence=16")
      ->excludes(bucket);
  CLI::Option* after =
      AddOption(*command, "--after", options.after, "PASS", "Print the graph after this step")
          ->check([](const std::string& name) { return CheckName(name, /*steps=*/true); });
  command->add_flag("--each", options.each, "Print the graph after every pass that changes it")
      ->excludes(after);
  AddOption(*command, "--without", options.without, "PASS",
            "Leave this pass out; may be given more than "
            "once")
      ->allow_extra_args(false)
      ->check([](const std::string& name) { return CheckName(name, /*steps=*/false); });
  AddJson(*command, options.json);
  AddPrecision(*command, flags->precision, "As `reprise.precision` of config.pbtxt");
  command->callback([flags, &action] {
    flags->options.precision = *ParsePrecision(flags->precision);
    action = [flags] { return PrintGraph(flags->options); };
  });
}

}  // namespace reprise::cli

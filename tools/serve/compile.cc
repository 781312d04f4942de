// reprise compile: captures the recipes of a model ahead, into a recipe store, without a server.

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/table.h"
#include "runtime/base/clock.h"
#include "runtime/base/cpu/compiled_tiers.h"
#include "runtime/base/status_macros.h"
#include "runtime/bucket/axis_sizes.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/batch/batch_plan.h"
#include "runtime/engine/capture/capture_pool.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/silent_observer.h"
#include "runtime/ops/custom/op_library.h"
#include "runtime/recipe/store.h"
#include "server/config/model_config.h"
#include "server/fetch/store_key.h"
#include "server/repository/flat_model.h"
#include "server/repository/model_loader.h"
#include "server/repository/repository_scan.h"
#include "tools/serve/commands.h"
#include "tools/serve/made_up_request.h"

namespace reprise::cli {
namespace {

// A limit that no store and no recipes of one model reach.
constexpr int64_t kMostBytes = int64_t{1} << 40;

struct CompileFlags {
  std::string model;
  std::string out;
  std::string buckets;
  std::vector<std::string> sizes;
  std::string isa;
  std::string gemm_provider = "auto";
  std::vector<std::string> op_libraries;
  std::string store_key;  // file of the key of all records; empty: none
  bool json = false;
};

// Ignores all events: nobody watches a model that is loaded to be compiled.
class NoModelEvents final : public ModelEvents {
 public:
  void OnQueueDepth(int64_t) override {}
  void OnBatch() override {}
  void OnRequest(const RequestRecord&) override {}
  void OnState(ModelState, const absl::Status&) override {}
};

// Returns the name of the model, as a server would name its folder; a file goes by its own name,
// and model.onnx by its folder's.
std::string NameOf(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, error);
  if (std::filesystem::is_directory(whole, error)) return whole.filename();
  return whole.stem() == "model" ? whole.parent_path().filename() : whole.stem();
}

absl::StatusOr<FoundModel> FindModel(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    return absl::NotFoundError(absl::StrCat("'", path, "' is neither a file nor a folder"));
  }
  ASSIGN_OR_RETURN(std::vector<FoundModel> found,
                   ScanRepositories({absl::StrCat(NameOf(path), "=", path)}));
  if (found.size() != 1) {
    return absl::NotFoundError(absl::StrCat("'", path, "' holds ", found.size(), " models"));
  }
  return std::move(found.front());
}

// Returns the settings of config.pbtxt, with the recipes that the flags name. Without flags those
// that the file names are compiled, or every bucket.
absl::StatusOr<ModelSettings> SettingsFor(const CompileFlags& flags, const FoundModel& model) {
  ASSIGN_OR_RETURN(const std::string text, ReadConfigFile(model));
  ASSIGN_OR_RETURN(ModelSettings settings, ParseModelConfig(text, model.name));
  settings = SettingsOf(model, std::move(settings));
  WarmupSettings& warmup = settings.warmup;
  if (!flags.buckets.empty() || !flags.sizes.empty()) warmup = {};
  if (flags.buckets == "all") {
    warmup.all = true;
  } else if (!flags.buckets.empty()) {
    warmup.buckets = absl::StrSplit(flags.buckets, ',');
  }
  for (const std::string& sizes : flags.sizes) {
    ASSIGN_OR_RETURN(warmup.sizes.emplace_back(), ParseAxisSizes(sizes));
  }
  if (!WantsWarmup(warmup)) warmup.all = true;
  warmup.ready_when_all = true;
  warmup.max_seconds = 0;
  warmup.max_bytes = 0;
  if (settings.capture == CaptureMode::kOff) {
    return absl::FailedPreconditionError(absl::StrCat(
        "model '", model.name, "' captures nothing: reprise.capture is off in its config.pbtxt"));
  }
  return settings;
}

absl::StatusOr<CpuDeviceOptions> DeviceOptionsOf(const CompileFlags& flags) {
  CpuDeviceOptions options;
  for (size_t i = 0; i < std::size(kGemmProviderNames); ++i) {
    if (kGemmProviderNames[i] == flags.gemm_provider) {
      options.gemm_provider = static_cast<GemmProvider>(i);
    }
  }
  if (flags.isa.empty()) return options;
  options.max_isa = *ParseIsa(flags.isa);
  const absl::string_view usable = IsaName(UsableIsa(options.max_isa));
  if (usable != flags.isa) {
    return absl::FailedPreconditionError(
        absl::StrCat("--isa ", flags.isa, ": a recipe runs once before it is kept, and this ",
                     "machine goes up to ", usable));
  }
  return options;
}

// Returns sizes of a request that the recipe serves with little padding or none, by axis label: for
// a packed recipe, rows of nearly the largest length. nullopt where the recipe's key lacks an axis.
std::optional<AxisSizes> SizesServedBy(const Model& model, const Recipe& recipe) {
  AxisSizes sizes;
  if (recipe.key.packing == kPacked) {
    const int64_t longest = model.packing()->longest();
    const int64_t tokens = PackedSizesOf(recipe.key).tokens;
    const int64_t rows = (tokens + longest - 1) / longest;
    for (const ModelAxis& axis : model.axes()) {
      sizes[axis.label] = axis.is_batch ? rows : tokens / rows;
    }
    return sizes;
  }
  for (const ModelAxis& axis : model.axes()) {
    const auto it = recipe.key.binding.axes.find(axis.symbol);
    if (it == recipe.key.binding.axes.end()) return std::nullopt;
    sizes[axis.label] = it->second;
  }
  return sizes;
}

// Looks the recipe up as a request would that it was made for, so that it counts as used: a server
// makes the recipes ready that were used before.
void NoteUse(Engine& engine, const Model& model, const Recipe& recipe) {
  const std::optional<AxisSizes> sizes = SizesServedBy(model, recipe);
  if (!sizes.has_value()) return;
  // Whole numbers are ones: a mask of them hides nothing.
  const absl::StatusOr<MadeUpRequest> made = MakeUpRequest(model, *sizes, /*max_id=*/1);
  if (!made.ok()) return;
  const absl::StatusOr<RequestShape> shape = model.Measure(made->request);
  BatchPlan plan(model);
  if (shape.ok() && plan.TryAdd(*shape)) engine.Prepare(plan, [](const absl::Status&) {});
}

struct Compiled {
  std::string model;
  std::string device;
  std::vector<CachedRecipe> recipes;
  int64_t captured = 0;  // the others were in the store
  double seconds = 0;
};

// Loads the version as a server would, with all of its warm-up.
absl::StatusOr<Compiled> CompileVersion(const FoundModel& found, int64_t number,
                                        const ModelSettings& settings, const CpuDevice& device,
                                        RecipeStore& store) {
  const SteadyClock clock;
  const int64_t start_ns = clock.NowNs();
  HelperPool cores(AvailableCpus());
  CapturePool captures({.urgent_threads = AvailableCpus(), .tuning_threads = 0});
  SilentObserver observer;
  std::atomic<int64_t> captured{0};
  Mutex mutex;
  std::vector<std::string> notes;
  Compiled compiled = {.model = found.name, .device = device.fingerprint()};
  {
    // Frozen: padding is proved at every size before the warm-up begins, and no kernel is timed.
    Engine engine({.device = &device,
                   .clock = &clock,
                   .cores = &cores,
                   .cache_bytes = kMostBytes,
                   .store = &store,
                   .captures = &captures,
                   .frozen = true,
                   .on_capture = [&](const MissRecord&) { ++captured; },
                   .log =
                       [&](const std::string& line) {
                         MutexLock lock(mutex);
                         notes.push_back(line);
                       }},
                  observer);
    ModelVersion version;
    version.name = found.name;
    version.number = number;
    version.version = absl::StrCat(number);
    version.events = std::make_unique<NoModelEvents>();
    version.warmup = std::make_shared<WarmupProgress>();
    const ServerState state;
    auto servable = LoadServable({.engine = engine,
                                  .version = version,
                                  .folder = FolderOf(found, number),
                                  .settings = settings,
                                  .state = state,
                                  .open_queue = [](Servable&) {}});
    captures.Stop();
    RETURN_IF_ERROR(servable.status());
    const WarmupProgress::State warmup = version.warmup->state();
    compiled.recipes = engine.ListRecipes();
    if (warmup.failed > 0 || !warmup.stopped.empty() || compiled.recipes.empty()) {
      MutexLock lock(mutex);
      for (const std::string& note : notes) std::fprintf(stderr, "%s\n", note.c_str());
      return absl::FailedPreconditionError(
          absl::StrCat("model '", found.name, "': ", warmup.done, " of ", warmup.wanted,
                       " recipes could be compiled; the lines above say why"));
    }
    const Model& model = *(*servable)->model;
    for (const CachedRecipe& one : compiled.recipes) NoteUse(engine, model, *one.recipe);
    engine.SaveUsage(UsageKeeper::When::kNow);
  }
  store.WritePending();
  if (const RecipeStore::Stats stats = store.GetStats(); stats.write_failures > 0) {
    return absl::UnavailableError(absl::StrCat(stats.write_failures, " records could not be ",
                                               "written to '", store.folder(), "'"));
  }
  compiled.captured = captured;
  compiled.seconds = static_cast<double>(clock.NowNs() - start_ns) * 1e-9;
  return compiled;
}

absl::Status PrintCompiled(const Compiled& compiled, const CompileFlags& flags) {
  if (flags.json) {
    nlohmann::ordered_json recipes = nlohmann::ordered_json::array();
    for (const CachedRecipe& one : compiled.recipes) {
      recipes.push_back({{"bucket", one.recipe->note.bucket},
                         {"binding", one.recipe->note.binding},
                         {"key", one.recipe->key.hex()},
                         {"launches", one.recipe->launches.size()}});
    }
    const nlohmann::ordered_json json = {{"model", compiled.model}, {"device", compiled.device},
                                         {"store", flags.out},      {"captured", compiled.captured},
                                         {"recipes", recipes},      {"seconds", compiled.seconds}};
    return PrintJson(json);
  }
  Table table({{"bucket"}, {"sizes"}, {"key"}, {"launches", Table::Align::kRight}});
  for (const CachedRecipe& one : compiled.recipes) {
    table.AddRow({one.recipe->note.bucket, one.recipe->note.binding, one.recipe->key.hex(),
                  absl::StrCat(one.recipe->launches.size())});
  }
  std::printf("%s\n%s: %zu recipes in %s, %lld of them compiled now, in %.1f s\nfor %s\n",
              table.Text().c_str(), compiled.model.c_str(), compiled.recipes.size(),
              flags.out.c_str(), static_cast<long long>(compiled.captured), compiled.seconds,
              compiled.device.c_str());
  return absl::OkStatus();
}

absl::Status RunCompile(const CompileFlags& flags) {
  for (const std::string& file : flags.op_libraries) RETURN_IF_ERROR(LoadOpLibrary(file).status());
  ASSIGN_OR_RETURN(const FoundModel model, FindModel(flags.model));
  ASSIGN_OR_RETURN(const ModelSettings settings, SettingsFor(flags, model));
  ASSIGN_OR_RETURN(const std::vector<int64_t> versions,
                   ChooseVersions(settings.config.version_policy(), model));
  ASSIGN_OR_RETURN(const CpuDeviceOptions options, DeviceOptionsOf(flags));
  const CpuDevice device(options);
  if (options.gemm_provider == GemmProvider::kOpenBlas) RETURN_IF_ERROR(device.openblas_status());
  ASSIGN_OR_RETURN(RecordMac mac, ReadStoreKey(flags.store_key));
  ASSIGN_OR_RETURN(const auto store, RecipeStore::Open({.folder = flags.out,
                                                        .max_bytes = kMostBytes,
                                                        .mac = std::move(mac),
                                                        .log = [](const std::string& line) {
                                                          std::fprintf(stderr, "%s\n",
                                                                       line.c_str());
                                                        }}));
  if (!store->writable()) {
    return absl::PermissionDeniedError(absl::StrCat("'", flags.out, "' cannot be written"));
  }
  for (const int64_t number : versions) {
    ASSIGN_OR_RETURN(const Compiled compiled,
                     CompileVersion(model, number, settings, device, *store));
    RETURN_IF_ERROR(PrintCompiled(compiled, flags));
  }
  return absl::OkStatus();
}

}  // namespace

void AddCompile(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<CompileFlags>();
  CLI::App* command = app.add_subcommand(
      "compile", "Compile the recipes of a model into a recipe store, without a server");
  command
      ->add_option("model", flags->model,
                   "Model file, folder of a model hub, or a repository's folder of a model, whose "
                   "config.pbtxt counts")
      ->required();
  AddOption(*command, "--out", flags->out, "STORE", "Folder for --recipe-cache; made, or added to")
      ->required();
  command->add_option("--buckets", flags->buckets,
                      "all, or buckets: b1_s16,b8_s128; the warm-up of config.pbtxt, or all, if "
                      "not given");
  AddOption(*command, "--sizes", flags->sizes, "AXIS=SIZE,...",
            "Recipe of exactly these sizes; may be given again")
      ->allow_extra_args(false);
  std::vector<std::string> names;
  names.reserve(std::size(kIsas));
  for (const NamedIsa& named : kIsas) names.emplace_back(named.name);
  AddOption(*command, "--isa", flags->isa, "ISA",
            "Most features of the CPU that will run them; those of this machine if not given")
      ->check(CLI::IsMember(names))
      ->check([](const std::string& asked) { return WhyNotIsa(asked); });
  command->add_option("--gemm-provider", flags->gemm_provider, "As the flag of reprised")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kGemmProviderNames), std::end(kGemmProviderNames))))
      ->capture_default_str();
  AddOption(*command, "--op-library", flags->op_libraries, "FILE", "As the flag of reprised")
      ->check(CLI::ExistingFile)
      ->allow_extra_args(false);
  AddOption(*command, "--store-key", flags->store_key, "FILE", "As the flag of reprised")
      ->check(CLI::ExistingFile);
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunCompile(*flags); }; });
}

}  // namespace reprise::cli

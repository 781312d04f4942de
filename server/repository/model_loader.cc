#include "server/repository/model_loader.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/base/status_macros.h"
#include "server/repository/ranked_servables.h"

namespace reprise {
namespace {

ModelOptions EngineOptionsOf(const ModelVersion& version, const std::string& path,
                             const ModelSettings& settings, bool frozen) {
  return {.id = {.name = version.name, .version = version.number},
          .path = path,
          .buckets = settings.buckets,
          .learnt_buckets = settings.learnt_buckets,
          .bucket_mode = settings.bucket_policy == BucketPolicyMode::kApply ? BucketMode::kApply
                         : settings.bucket_policy == BucketPolicyMode::kSuggest
                             ? BucketMode::kSuggest
                             : BucketMode::kOff,
          .bucket_payback_ns = settings.bucket_payback_seconds * 1'000'000'000,
          .max_batch_tokens = settings.max_batch_tokens,
          .max_batch_size = settings.config.max_batch_size(),
          .overflow = settings.overflow == Overflow::kReject ? BucketPolicy::Overflow::kReject
                                                             : BucketPolicy::Overflow::kExact,
          .max_exact = settings.max_exact,
          .max_recipe_bytes = settings.max_recipe_bytes,
          .max_arena_bytes = settings.max_arena_bytes,
          .max_parameter_bytes = settings.max_parameter_bytes,
          .no_padding = settings.padding_off,
          .packing = WantsPacking(settings) ? PackingMode::kAuto : PackingMode::kOff,
          .precision = settings.precision,
          .fills = settings.fills,
          .capture = settings.capture == CaptureMode::kInline       ? CapturePolicy::kInline
                     : settings.capture == CaptureMode::kBackground ? CapturePolicy::kBackground
                                                                    : CapturePolicy::kQuick,
          .frozen = settings.frozen,
          .tune = settings.tune ? TuneMode::kAuto : TuneMode::kOff,
          .warmup = settings.warmup.all ? std::vector<std::string>{"all"} : settings.warmup.buckets,
          // Where ready means that nothing is captured any more, everything is proved before.
          .confirm_padding_later = !frozen && !settings.frozen && !WantsWarmup(settings.warmup)};
}

// The ranks that are tried first where nobody says one: those of tables, sequences, images.
constexpr int64_t kUsualRanks[] = {2, 3, 4, 1, 5, 0};

absl::StatusOr<std::shared_ptr<Servable>> LoadAt(const ServableSource& source,
                                                 const InputRanks& ranks) {
  Engine& engine = source.engine;
  const ModelSettings& settings = source.settings;
  const std::string path =
      (std::filesystem::path(source.folder) / settings.model_filename).string();
  auto servable = std::make_shared<Servable>();
  ModelOptions options = EngineOptionsOf(source.version, path, settings, engine.options().frozen);
  options.ranks = ranks;
  ASSIGN_OR_RETURN(servable->model, engine.Load(std::move(options)));
  const Model& model = *servable->model;
  ModelFacts facts = {.inputs = model.inputs(),
                      .outputs = model.outputs(),
                      .max_batch = model.batches_requests() ? model.max_batch() : 0};
  for (const ModelAxis& axis : model.axes()) facts.axes.push_back(axis.label);
  ASSIGN_OR_RETURN(servable->signature, Reconcile(settings, source.version.name, facts));
  servable->settings = settings;
  servable->warmup = std::make_shared<Warmup>(engine, servable->model, settings.warmup,
                                              source.version.warmup, source.state);
  ASSIGN_OR_RETURN(const std::vector<AxisSizes> bindings,
                   WarmupBindings(model, settings.warmup,
                                  std::filesystem::path(source.folder).parent_path().string()));
  servable->warmup->RunUntilReady(bindings, UsedBefore(model));
  source.open_queue(*servable);
  return servable;
}

// The rank that config.pbtxt gives an input by its dims; the batch is not among them.
std::optional<int64_t> ConfiguredRank(const ModelSettings& settings, const std::string& input) {
  for (const auto& declared : settings.config.input()) {
    if (declared.name() != input || declared.dims().empty()) continue;
    return declared.dims_size() + (settings.config.max_batch_size() > 0 ? 1 : 0);
  }
  return std::nullopt;
}

// Requests decide the ranks of `open`; those in `fixed` are said.
absl::StatusOr<std::shared_ptr<Servable>> LoadRanked(const ServableSource& source,
                                                     std::vector<std::string> open,
                                                     const InputRanks& fixed) {
  const auto load =
      [source, fixed](const InputRanks& asked) -> absl::StatusOr<std::shared_ptr<const Servable>> {
    InputRanks ranks = fixed;
    ranks.insert(asked.begin(), asked.end());
    ASSIGN_OR_RETURN(const std::shared_ptr<Servable> loaded, LoadAt(source, ranks));
    source.engine.ConfirmPadding(*loaded->model);
    return loaded;
  };
  absl::Status first;
  for (const int64_t rank : kUsualRanks) {
    InputRanks ranks;
    for (const std::string& name : open) ranks[name] = rank;
    const auto loaded = load(ranks);
    if (!loaded.ok()) {
      if (first.ok()) first = loaded.status();
      continue;
    }
    const Servable& usual = **loaded;
    auto servable = std::make_shared<Servable>();
    servable->model = usual.model;
    servable->settings = usual.settings;
    servable->signature = WithOpenRanks(usual.signature, open);
    servable->queue = usual.queue;
    servable->warmup = usual.warmup;
    servable->shapes = usual.shapes;
    servable->ranked = std::make_shared<RankedServables>(std::move(open), load);
    servable->ranked->Add(ranks, *loaded);
    return servable;
  }
  return first;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Servable>> LoadServable(const ServableSource& source) {
  const std::filesystem::path path =
      std::filesystem::path(source.folder) / source.settings.model_filename;
  // The load explains what cannot be read.
  const absl::StatusOr<std::vector<std::string>> without = InputsWithoutRank(path.string());
  InputRanks fixed;
  std::vector<std::string> open;
  if (without.ok()) {
    for (const std::string& name : *without) {
      if (const std::optional<int64_t> rank = ConfiguredRank(source.settings, name)) {
        fixed[name] = *rank;
      } else {
        open.push_back(name);
      }
    }
  }
  if (open.empty()) return LoadAt(source, fixed);
  return LoadRanked(source, std::move(open), fixed);
}

}  // namespace reprise

#include "server/repository/start_generation.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/replay/helper_pool.h"
#include "runtime/generate/encoder_decoder.h"
#include "runtime/generate/generator.h"
#include "server/hub/generation_files.h"
#include "server/repository/generation_loop.h"

namespace reprise {
namespace {

// Loads the models next to an encoder that make tokens of its result; none where `path` is no
// file of an encoder-decoder.
absl::StatusOr<std::shared_ptr<const Model>> LoadBesideEncoder(Engine& engine,
                                                               const std::string& path,
                                                               const Servable& servable,
                                                               EncoderModels& encoder) {
  const std::optional<EncoderDecoderFiles> files = FindEncoderDecoder(path);
  if (!files.has_value()) return servable.model;
  const ModelOptions& options = servable.model->options();
  ASSIGN_OR_RETURN(const std::shared_ptr<Model> decoder, LoadDecoder(engine, *files, options));
  ASSIGN_OR_RETURN(encoder.cross, LoadCrossModel(engine, *files, options));
  encoder.encoder = servable.model;
  return decoder;
}

// Returns the most threads of one replay.
int ThreadsOf(const Engine& engine, const Model& model) {
  const HelperPool* cores = engine.CoresOf(model);
  return cores == nullptr ? 1 : cores->cores();
}

}  // namespace

absl::Status StartGeneration(Engine& engine, const ModelVersion& version, const std::string& path,
                             const ModelSettings& settings, StepGate* gate, RankHub* ranks,
                             Servable& servable) {
  if (servable.stateful != nullptr) {
    servable.generation_refusal = "sequence_batching names its state";
    return absl::OkStatus();
  }
  if (!settings.generation) {
    servable.generation_refusal = "reprise.generation is off";
    return absl::OkStatus();
  }
  const GenerationFacts facts = ReadGenerationFiles(path);
  ModelEvents& events = *version.events;
  // While a lane waits for other stages of a pipeline, the others compute.
  const bool pipeline = ranks != nullptr && ranks->parallelism() == Parallelism::kPipeline;
  const int lanes = pipeline ? ranks->ranks() : 1;
  GeneratorOptions options = {
      .page_bytes = settings.cache_bytes / lanes,
      .cache_dtype = settings.cache_dtype,
      .context = settings.context,
      .stated_context = facts.context,
      .max_running = (settings.max_sequences + lanes - 1) / lanes,
      .max_stall_ns = settings.max_stall_ms * 1'000'000,
      .eos_ids = settings.eos_ids.empty() ? facts.eos_ids : settings.eos_ids,
      .rules = facts.rules,
      .speculate = settings.speculation,
      .max_threads = ThreadsOf(engine, *servable.model),
      .events = {.on_first_token = [&events](int64_t ns) { events.OnFirstToken(ns); },
                 .on_token = [&events](int64_t ns) { events.OnNextToken(ns); },
                 .on_page = [&events](const PageChange& change) { events.OnPage(change); }},
      // A lane would keep its place while it waits.
      .gate = pipeline ? nullptr : gate,
      .ranks = ranks};
  const auto make = [&]() -> absl::StatusOr<std::vector<std::unique_ptr<Generator>>> {
    ASSIGN_OR_RETURN(const std::shared_ptr<const Model> decoder,
                     LoadBesideEncoder(engine, path, servable, options.encoder));
    std::vector<std::unique_ptr<Generator>> made;
    for (options.lane = 0; options.lane < lanes; ++options.lane) {
      ASSIGN_OR_RETURN(made.emplace_back(), Generator::Create(engine, decoder, options));
    }
    return made;
  };
  const int64_t before = times_without_memory;
  absl::StatusOr<std::vector<std::unique_ptr<Generator>>> generator = make();
  if (!generator.ok()) {
    if (times_without_memory != before) {
      return NoMemoryStatus(
          absl::StrCat("the pages of a decoder (", generator.status().message(), ")"), 0);
    }
    servable.generation_refusal = std::string(generator.status().message());
    if (absl::IsNotFound(generator.status())) return absl::OkStatus();
    if (ranks != nullptr) return generator.status();
    servable.model->Note(
        absl::StrCat("clients carry the cache of this decoder, and it makes no "
                     "tokens by itself: ",
                     servable.generation_refusal));
    return absl::OkStatus();
  }
  servable.model->Note(absl::StrCat("makes tokens: ", generator->front()->Describe()));
  servable.generation = std::make_shared<GenerationLoop>(
      *std::move(generator), [&events](const GeneratorStats& stats) {
        events.OnGeneration({.running = stats.running,
                             .waiting = stats.waiting,
                             .set_back = stats.set_back,
                             .stalled = stats.stalled,
                             .pages_used = stats.pages_used,
                             .pages_free = stats.pages_free,
                             .pages_shared = stats.pages_shared,
                             .prompt_tokens = stats.prompt_tokens,
                             .generated_tokens = stats.generated_tokens,
                             .cached_tokens = stats.cached_tokens,
                             .drafts_right = stats.drafts_right,
                             .drafts_wrong = stats.drafts_wrong});
      });
  return absl::OkStatus();
}

}  // namespace reprise

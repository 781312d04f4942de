#include "runtime/generate/generator.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/generate/context_overflow.h"
#include "runtime/generate/sequence_pages.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/paged/place_values.h"

namespace reprise {

std::string GenerationWait::Text() const {
  constexpr int64_t kNoticedNs = 1'000'000;
  if (ns < kNoticedNs) return "";
  const std::string time = FormatText("%.1f ms", static_cast<double>(ns) * 1e-6);
  if (prompts_before == 0) return absl::StrCat(time, ": sequences that go on came before it");
  return absl::StrCat(time, ": ", prompts_before, " prompts of ", tokens_before,
                      " tokens before it");
}

absl::string_view EndingName(Ending finish) {
  constexpr absl::string_view kNames[] = {"", "stop", "length", "error"};
  return kNames[static_cast<size_t>(finish)];
}

Generator::Generator(Engine& engine, std::shared_ptr<const Model> model, GeneratorOptions options)
    : engine_(engine), model_(std::move(model)), options_(std::move(options)) {}

Generator::~Generator() { Close(absl::UnavailableError("the model is unloaded")); }

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(Engine& engine,
                                                             std::shared_ptr<const Model> model,
                                                             GeneratorOptions options) {
  std::unique_ptr<Generator> made(new Generator(engine, std::move(model), std::move(options)));
  RETURN_IF_ERROR(WithinMemory([] { return "making a generator"; }, [&] { return made->Init(); }));
  return made;
}

absl::Status Generator::Init() {
  if (engine_.options().device->name() != "cpu") {
    return absl::UnimplementedError(absl::StrCat("device '", engine_.options().device->name(),
                                                 "' has no attention over pages"));
  }
  std::vector<std::string> outputs;
  for (const ModelIo& output : model_->outputs()) outputs.push_back(output.name);
  const ParameterStore& parameters = model_->owner()->parameters();
  const auto value_of = [&](const ParameterExpr& parameter) -> std::optional<Tensor> {
    absl::StatusOr<Tensor> value = parameters.Peek(parameter);
    if (!value.ok()) return std::nullopt;
    return *std::move(value);
  };
  const HelperPool* const cores = engine_.CoresOf(*model_);
  // Attention that rounds keys and values to bfloat16 may as well find them so: the same bits from
  // half of the memory.
  const bool rounds =
      model_->options().precision != Precision::kExact && model_->options().precision_ops.empty();
  if (rounds && options_.cache_dtype == ops::CacheDType::kFloat32) {
    options_.cache_dtype = ops::CacheDType::kBFloat16;
  }
  ASSIGN_OR_RETURN(PagedForm form, MakePagedForm(Engine::SymbolicGraph(*model_, false), outputs,
                                                 {.context = options_.context,
                                                  .stated_context = options_.stated_context,
                                                  .value_of = value_of,
                                                  .cache_dtype = options_.cache_dtype,
                                                  .threads = cores == nullptr ? 1 : cores->cores(),
                                                  .ranks = is_pipeline() ? 1 : shard().ranks}));
  if ((form.cross_page_bytes > 0) != (options_.encoder.encoder != nullptr)) {
    return absl::UnimplementedError(
        form.cross_page_bytes > 0
            ? "its caches hold an encoder's result, and there is no encoder_model.onnx next to it"
            : "no cache holds the result of the encoder next to it");
  }
  cross_context_ = form.cross_context;
  ids_input_ = form.decoder.ids;
  context_ = form.context;
  vocabulary_ = form.vocabulary;
  caches_ = static_cast<int64_t>(form.caches.size());
  id_rows_ = PositionsOfTables(*form.graph, form.graph->FindValue(ids_input_));
  if (id_rows_ <= 0) id_rows_ = vocabulary_;
  // One pool has both kinds of pages.
  const auto page_bytes = static_cast<size_t>(std::max(form.page_bytes, form.cross_page_bytes));
  const size_t aligned = (page_bytes + 63) / 64 * 64;
  const int64_t count = options_.page_bytes / static_cast<int64_t>(aligned);
  if (count < 1) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a page takes ", aligned, " bytes, and all may take ", options_.page_bytes));
  }
  ASSIGN_OR_RETURN(pages_, PagePool::Create({.page_bytes = aligned,
                                             .max_pages = count,
                                             .on_change = options_.events.on_page,
                                             .on_copy = [this](PageId from, PageId to) {
                                               if (ranks_ != nullptr) ranks_->Copy(from, to);
                                             }}));
  // A replay keeps its cores while it waits for other stages: other lanes would wait, too.
  if (is_pipeline() && cores != nullptr) own_cores_ = cores->Another();
  ASSIGN_OR_RETURN(
      std::unique_ptr<Stream> stream,
      Stream::Create({.cores = own_cores_ ? own_cores_.get() : engine_.CoresOf(*model_),
                      .max_threads = options_.max_threads,
                      .max_arena_bytes = options_.max_arena_bytes}));
  if (form.cross_page_bytes == 0) options_.rules = {};  // Prompts precede its answers.
  RETURN_IF_ERROR(SettleRules());
  if (form.cross_page_bytes > 0) {
    ASSIGN_OR_RETURN(encoder_,
                     PromptEncoder::Create(engine_, options_.encoder, form, options_.max_threads,
                                           options_.max_arena_bytes));
    if (options_.rules.start.empty()) {
      return absl::UnimplementedError(
          "no file next to it has decoder_start_token_id, which its answers begin with");
    }
  }
  const std::string plan = options_.ranks == nullptr ? "" : FingerprintGraph(*form.graph).digest;
  ASSIGN_OR_RETURN(StepRecipes recipes,
                   StepRecipes::Make(engine_, *model_, form, options_.step_tokens,
                                     options_.max_running, *stream, shard()));
  if (options_.speculate) speculation_.emplace(context_);
  runner_ = std::make_unique<StepRunner>(std::move(stream), std::move(recipes), vocabulary_);
  absl::StatusOr<std::unique_ptr<CarriedSteps>> carried =
      absl::UnimplementedError("several ranks compute them");
  if (options_.ranks == nullptr) {
    carried = CarriedSteps::Make(model_, Engine::SymbolicGraph(*model_, false), form.decoder,
                                 {.context = context_, .vocabulary = vocabulary_, .ids = id_rows_},
                                 this->recipes(), *engine_.options().clock);
  }
  if (carried.ok()) {
    carried_ = *std::move(carried);
  } else {
    carried_refusal_ = std::string(carried.status().message());
  }
  if (options_.gate != nullptr) turn_.emplace(*options_.gate);
  if (options_.ranks != nullptr) MeetRanks(plan);
  Publish();
  return absl::OkStatus();
}

absl::Status Generator::SettleRules() {
  DecoderRules& rules = options_.rules;
  const int64_t ids = std::min(id_rows_, vocabulary_);
  for (std::vector<int64_t>* never : {&rules.suppressed, &rules.suppressed_first}) {
    std::erase_if(*never, [&](int64_t id) { return id < 0 || id >= vocabulary_; });
  }
  std::vector<int64_t> forced;
  for (const auto& [place, id] : rules.forced) forced.push_back(id);
  if (rules.forced_last.has_value()) forced.push_back(*rules.forced_last);
  for (const int64_t id : forced) {
    if (id >= 0 && id < ids) continue;
    return absl::UnimplementedError(absl::StrCat("a file next to it forces id ", id,
                                                 ", which is out of range [0, ", ids - 1, "]"));
  }
  return absl::OkStatus();
}

std::string Generator::Describe() const {
  const std::string carried = carried_ != nullptr
                                  ? "run on them too"
                                  : absl::StrCat("do not run on them: ", carried_refusal_);
  return FormatText(
      "%d caches in pages of %d positions (%.1f KiB each, %d at most), a context of %d, %d recipes "
      "of 1 to %d new tokens; requests with a client-managed KV cache %s",
      static_cast<int>(caches_), static_cast<int>(pages_->options().positions),
      static_cast<double>(pages_->options().page_bytes) / 1024,
      static_cast<int>(pages_->options().max_pages), static_cast<int>(context_),
      static_cast<int>(recipes().all().size()), static_cast<int>(recipes().most_tokens()), carried);
}

absl::Status Generator::CheckPages(const SequenceRequest& request) const {
  const int64_t positions = pages_->options().positions;
  const auto size = static_cast<int64_t>(request.asked.ids.size());
  const int64_t cross = request.cross.has_value() ? request.cross->PagesOf(positions) : 0;
  const int64_t needed = (size + positions) / positions + cross;
  if (needed <= pages_->options().max_pages) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the prompt needs ", needed, " pages, and there are ", pages_->options().max_pages));
}

absl::Status Generator::CheckDraws(const SequenceRequest& request) const {
  const SamplingOptions& sampling = request.asked.sampling;
  const DecoderRules& rules = options_.rules;
  const bool lists = !sampling.allowed_ids.empty() || sampling.min_tokens > 0;
  const auto given = static_cast<int64_t>(request.asked.ids.size());
  // The number of the first draw.
  const int64_t first = request.asked.begins_whole ? 0 : rules.FirstFree(given) - given;
  if (!lists || first >= sampling.max_tokens) return absl::OkStatus();
  const int64_t ids = std::min(id_rows_, vocabulary_);
  std::vector<int64_t> never = rules.suppressed;
  if (first + 1 < sampling.max_tokens) {
    RETURN_IF_ERROR(sampling.CheckAnyLeft(ids, never, first + 1 < sampling.min_tokens));
  }
  absl::c_copy(rules.suppressed_first, std::back_inserter(never));
  return sampling.CheckAnyLeft(ids, never, first < sampling.min_tokens);
}

absl::Status Generator::SettleRequest(SequenceRequest& shared) const {
  GenerationRequest& request = shared.asked;
  const auto size = static_cast<int64_t>(request.ids.size());
  if (shared.cross.has_value()) {
    RETURN_IF_ERROR(encoder_->Check(shared.cross->prompt));
    if (shared.cross->length.value_or(0) > cross_context_) {
      return absl::InvalidArgumentError(absl::StrCat("the prompt has ", *shared.cross->length,
                                                     " tokens, and there is room for ",
                                                     cross_context_));
    }
  }
  if (size == 0) return absl::InvalidArgumentError("the prompt has no tokens");
  if (size >= context_) {
    return ContextOverflow(absl::StrCat("the prompt has ", size,
                                        " tokens, and the model's context of ", context_,
                                        " leaves room for ", context_ - 1));
  }
  RETURN_IF_ERROR(CheckPages(shared));
  for (size_t i = 0; i < request.ids.size(); ++i) {
    if (request.ids[i] >= 0 && request.ids[i] < id_rows_) continue;
    return absl::InvalidArgumentError(absl::StrCat("input '", ids_input_, "': value ",
                                                   request.ids[i], " at ", i,
                                                   " is out of range [0, ", id_rows_ - 1, "]"));
  }
  RETURN_IF_ERROR(request.sampling.Settle(vocabulary_, options_.eos_ids));
  RETURN_IF_ERROR(request.beams.Check(request.sampling.n));
  RETURN_IF_ERROR(CheckBeamPages(shared));
  return CheckDraws(shared);
}

absl::Status Generator::CheckOpen(const KeyShare& share) const {
  if (closed_) return absl::UnavailableError("the model is unloaded");
  if (ranks_ != nullptr && !ranks_->leads()) return ranks_->TakesNone();
  RETURN_IF_ERROR(state());
  if (share.waiting < options_.max_waiting) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(share.waiting, " requests wait already, and ", options_.max_waiting, " may"));
}

std::shared_ptr<KeyShare> Generator::ShareOf(const GenerationRequest& request) {
  std::shared_ptr<KeyShare>& share = shares_[request.key];
  if (share == nullptr) share = std::make_shared<KeyShare>();
  share->weight = request.weight;
  if (options_.gate != nullptr) share->all_models = &options_.gate->Of(request.key, request.weight);
  return share;
}

absl::StatusOr<std::shared_ptr<Generation>> Generator::Submit(GenerationRequest request) {
  auto shared = std::make_shared<SequenceRequest>();
  shared->asked = std::move(request);
  if (encoder_ != nullptr) {
    GenerationRequest& asked = shared->asked;
    CrossPages& cross = shared->cross.emplace();
    cross.prompt = {.ids = std::move(asked.ids),
                    .numbers = std::move(asked.numbers),
                    .shape = {asked.numbers_shape.begin(), asked.numbers_shape.end()}};
    cross.length = encoder_->LengthOf(cross.prompt);
    asked.ids = asked.decoder_ids.empty() ? options_.rules.start : std::move(asked.decoder_ids);
  }
  RETURN_IF_ERROR(SettleRequest(*shared));
  {
    // Overload is told before any work is spent on the request.
    MutexLock lock(mutex_);
    shared->share = ShareOf(shared->asked);
    RETURN_IF_ERROR(CheckOpen(*shared->share));
  }
  // A priority of 0 stands for the middle one.
  const uint64_t priority = shared->asked.priority;
  shared->rank = priority == 0 ? UINT64_MAX / 2 : priority;
  shared->handle = std::make_shared<Generation>();
  shared->start_ns = engine_.options().clock->NowNs();
  std::optional<uint64_t>& seed = shared->asked.sampling.seed;
  if (!seed.has_value()) seed = static_cast<uint64_t>(shared->start_ns) + seeds_++;
  SequencePtr first = NewSequence(shared, 0);
  if (const BeamOptions& beams = shared->asked.beams; beams.beams > 1) {
    const SamplingOptions& sampling = shared->asked.sampling;
    const int64_t room = context_ - static_cast<int64_t>(shared->asked.ids.size());
    shared->group.emplace(
        BeamGroup{.search = BeamSearch(beams, {.stops = sampling.stop_ids,
                                               .min_tokens = sampling.min_tokens,
                                               .max_tokens = std::min(sampling.max_tokens, room)}),
                  .beams = {first.get()},
                  .made = 1});
  }
  // The limit is looked at and counted in one step: others may have come meanwhile.
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckOpen(*shared->share));
  shared->arrival = arrivals_++;
  shared->wait.prompts_before = prompts_left_ + static_cast<int64_t>(submitted_.size());
  shared->wait.tokens_before = prompt_tokens_left_;
  prompt_tokens_left_ += first->missing();
  submitted_.push_back(std::move(first));
  ++shared->share->waiting;
  changed_.NotifyAll();
  return shared->handle;
}

Generator::SequencePtr Generator::NewSequence(const std::shared_ptr<SequenceRequest>& request,
                                              int64_t answer) const {
  auto sequence = std::make_unique<Sequence>();
  sequence->request = request;
  sequence->answer = answer;
  sequence->tokens = request->asked.ids;
  // The answers share the options of the request.
  sequence->sampler.emplace(
      std::shared_ptr<const SamplingOptions>(request, &request->asked.sampling),
      static_cast<uint64_t>(answer));
  if (request->asked.constrain != nullptr) sequence->constraint = request->asked.constrain();
  for (const int64_t id : request->asked.ids) sequence->sampler->AddPrompt(id);
  return sequence;
}

void Generator::Wait(int64_t ns) {
  MutexLock lock(mutex_);
  if (submitted_.empty() && !woken_ && !closed_) {
    changed_.WaitFor(mutex_, std::chrono::nanoseconds(ns));
  }
  woken_ = false;
}

void Generator::Wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  changed_.NotifyAll();
}

GeneratorStats Generator::Stats() const {
  MutexLock lock(mutex_);
  GeneratorStats stats = stats_;
  stats.waiting += static_cast<int64_t>(submitted_.size());
  return stats;
}

bool Generator::Step() {
  if (ranks_ != nullptr && !ranks_->leads()) return Follow();
  TakeRequests();
  if (ranks_ != nullptr && !KeepWithRanks()) {
    Publish();
    return false;
  }
  CountShares();
  if (!turn_.has_value()) return ComputeStep();
  if (!BeginTurn()) {
    Publish();
    return false;
  }
  const int64_t start = engine_.options().clock->NowNs();
  const bool goes_on = ComputeStep();
  ChargeTurn(engine_.options().clock->NowNs() - start);
  if (!goes_on) options_.gate->End(*turn_);
  return goes_on;
}

bool Generator::ComputeStep() {
  encoded_ = false;
  Admit();
  const PlannedStep step = Plan();
  if (step.items.empty()) {
    const bool goes_on = BreakStall();
    Publish();
    return goes_on;
  }
  const int64_t start = engine_.options().clock->NowNs();
  const absl::StatusOr<absl::Span<float>> scores =
      WithinMemory([] { return "a step"; }, [&] { return RunStep(step); });
  if (!scores.ok()) {
    for (const StepItem& item : step.items) End(*item.sequence, Ending::kError, scores.status());
  } else {
    Learn(step, engine_.options().clock->NowNs() - start);
    FinishStep(step, *scores);
  }
  EraseEnded();
  Publish();
  return true;
}

PlannedStep Generator::Plan() {
  std::vector<Sequence*> ready;
  for (const SequencePtr& one : running_) {
    if (!one->offered) ready.push_back(one.get());
  }
  PlannedStep step = PlanStep(
      ready, Limits(), [&](Sequence& sequence, int64_t count) { return MakeRoom(sequence, count); },
      [&](const Sequence& sequence) { return absl::c_linear_search(dropped_, &sequence); },
      use_of_steps_);
  for (Sequence* sequence : std::exchange(dropped_, {})) {
    if (sequence->request != nullptr) WaitAgain(*sequence);
  }
  // One beam that has ended has ended all of its group.
  std::erase_if(step.items, [&](const StepItem& item) {
    if (item.sequence->request != nullptr) return false;
    step.tokens -= item.count;
    return true;
  });
  EraseEnded();
  if (speculation_.has_value()) {
    speculation_->Extend(step, Limits(), [&](Sequence& sequence, int64_t wanted) {
      return RoomForDraft(sequence, wanted);
    });
  }
  return step;
}

void Generator::WaitAgain(Sequence& sequence) {
  if (EndIfTakenTooOften(sequence)) return;
  const auto place =
      absl::c_find_if(running_, [&](const SequencePtr& one) { return one.get() == &sequence; });
  PutBack(std::move(*place));
  running_.erase(place);
}

void Generator::Learn(const PlannedStep& step, int64_t ns) {
  if (speculation_.has_value()) speculation_->Learn(step, ns);
  ++counts_.steps;
  counts_.prompt_tokens += step.prompt_tokens;
  step_times_.Learn(step.tokens, ns);
}

void Generator::Close(const absl::Status& status) {
  std::vector<SequencePtr> taken;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    taken.swap(submitted_);
    changed_.NotifyAll();
  }
  for (SequencePtr& sequence : taken) waiting_.push_back(std::move(sequence));
  for (const SequencePtr& sequence : running_) End(*sequence, Ending::kError, status);
  for (const SequencePtr& sequence : stalled_) End(*sequence, Ending::kError, status);
  for (const SequencePtr& sequence : waiting_) End(*sequence, Ending::kError, status);
  EraseEnded();
  CountShares();
  if (turn_.has_value()) options_.gate->End(*turn_);
  if (pages_ != nullptr) Publish();
}

void Generator::Publish() {
  counts_.running = static_cast<int64_t>(running_.size());
  counts_.stalled = static_cast<int64_t>(stalled_.size());
  counts_.waiting = counts_.set_back = 0;
  for (const SequencePtr& one : waiting_)
    ++(one->set_back > 0 ? counts_.set_back : counts_.waiting);
  counts_.pages_used = pages_->held();
  counts_.pages_free = pages_->available();
  counts_.pages_shared = pages_->shared();
  int64_t prompts = 0, tokens = 0;
  const auto add = [&](const SequencePtr& one) {
    if (one->continues()) return;
    ++prompts;
    tokens += one->missing();
  };
  absl::c_for_each(running_, add);
  absl::c_for_each(waiting_, add);
  MutexLock lock(mutex_);
  for (const auto& [key, share] : shares_) share->waiting = 0;
  for (const SequencePtr& one : waiting_) ++one->request->share->waiting;
  for (const SequencePtr& one : submitted_) ++one->request->share->waiting;
  stats_ = counts_;
  prompts_left_ = prompts;
  prompt_tokens_left_ = tokens;
  for (const SequencePtr& one : submitted_) prompt_tokens_left_ += one->missing();
}

}  // namespace reprise

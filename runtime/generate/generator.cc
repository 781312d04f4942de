#include "runtime/generate/generator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/generate/sequence_pages.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/paged/place_values.h"

namespace reprise {
namespace {

constexpr int64_t kMostSetBacks = 3;
constexpr float kNever = -std::numeric_limits<float>::infinity();
// The least number of prompt tokens of a step while sequences go on.
constexpr int64_t kLeastPromptTokens = 16;

// Served sooner: a lower priority, where 0 stands for the middle one, then whoever came first.
bool IsSooner(const Sequence& a, const Sequence& b) {
  if (a.request == nullptr || b.request == nullptr) return false;  // It has ended in this step.
  const auto rank = [](uint64_t priority) { return priority == 0 ? UINT64_MAX / 2 : priority; };
  const uint64_t rank_a = rank(a.request->asked.priority), rank_b = rank(b.request->asked.priority);
  if (rank_a != rank_b) return rank_a < rank_b;
  if (a.request->arrival != b.request->arrival) return a.request->arrival < b.request->arrival;
  return a.answer < b.answer;
}

}  // namespace

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
  ASSIGN_OR_RETURN(PagedForm form, MakePagedForm(Engine::SymbolicGraph(*model_, false), outputs,
                                                 {.context = options_.context,
                                                  .value_of = value_of,
                                                  .cache_dtype = options_.cache_dtype}));
  if ((form.cross_page_bytes > 0) != (options_.encoder.encoder != nullptr)) {
    return absl::UnimplementedError(form.cross_page_bytes > 0
                                        ? "its caches hold what an encoder computes, and there is "
                                          "no encoder_model.onnx beside it"
                                        : "no cache holds what the encoder beside it computes");
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
  ASSIGN_OR_RETURN(pages_, PagePool::Create({.page_bytes = aligned, .max_pages = count}));
  ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream,
                   Stream::Create({.cores = engine_.options().cores,
                                   .max_threads = options_.max_threads,
                                   .max_arena_bytes = options_.max_arena_bytes}));
  if (form.cross_page_bytes == 0) options_.rules = {};  // Prompts stand before its answers.
  if (form.cross_page_bytes > 0) {
    ASSIGN_OR_RETURN(encoder_,
                     PromptEncoder::Create(engine_, options_.encoder, form, options_.max_threads,
                                           options_.max_arena_bytes));
    if (options_.rules.start.empty()) {
      return absl::UnimplementedError(
          "no file beside it says decoder_start_token_id, which its answers begin with");
    }
  }
  ASSIGN_OR_RETURN(StepRecipes recipes,
                   StepRecipes::Make(engine_, *model_, form, options_.step_tokens,
                                     options_.max_running, *stream));
  if (options_.speculate) speculation_.emplace(context_);
  runner_ = std::make_unique<StepRunner>(std::move(stream), std::move(recipes), vocabulary_);
  absl::StatusOr<std::unique_ptr<CarriedSteps>> carried =
      CarriedSteps::Make(model_, Engine::SymbolicGraph(*model_, false), form.decoder,
                         {.context = context_, .vocabulary = vocabulary_, .ids = id_rows_},
                         this->recipes(), *engine_.options().clock);
  if (carried.ok()) {
    carried_ = *std::move(carried);
  } else {
    carried_refusal_ = std::string(carried.status().message());
  }
  Publish();
  return absl::OkStatus();
}

std::string Generator::Describe() const {
  const std::string carried = carried_ != nullptr
                                  ? "run on them too"
                                  : absl::StrCat("do not run on them: ", carried_refusal_);
  return FormatText(
      "%d caches in pages of %d positions (%.1f KiB each, %d at most), a context of %d, %d recipes "
      "of 1 to %d new tokens; requests that carry their cache %s",
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

absl::Status Generator::CheckRequest(const SequenceRequest& shared) const {
  const GenerationRequest& request = shared.asked;
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
    return absl::InvalidArgumentError(absl::StrCat("the prompt has ", size,
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
  RETURN_IF_ERROR(request.beams.Check(request.sampling.n));
  RETURN_IF_ERROR(CheckBeamPages(shared));
  return request.sampling.Check(vocabulary_);
}

absl::Status Generator::CheckOpen() const {
  if (closed_) return absl::UnavailableError("the model is unloaded");
  if (waiting_count_ < options_.max_waiting) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      waiting_count_.load(), " requests wait already, and ", options_.max_waiting, " may"));
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
  RETURN_IF_ERROR(CheckRequest(*shared));
  {
    // Overload is told before any work is spent on the request.
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(CheckOpen());
  }
  shared->handle = std::make_shared<Generation>();
  shared->start_ns = engine_.options().clock->NowNs();
  std::optional<uint64_t>& seed = shared->asked.sampling.seed;
  if (!seed.has_value()) seed = static_cast<uint64_t>(shared->start_ns) + seeds_++;
  SequencePtr first = NewSequence(shared, 0);
  if (const BeamOptions& beams = shared->asked.beams; beams.beams > 1) {
    const SamplingOptions& sampling = shared->asked.sampling;
    const int64_t room = context_ - static_cast<int64_t>(shared->asked.ids.size());
    shared->group.emplace(
        BeamGroup{.search = BeamSearch(beams, {.stops = StopsOf(sampling),
                                               .min_tokens = sampling.min_tokens,
                                               .max_tokens = std::min(sampling.max_tokens, room)}),
                  .beams = {first.get()},
                  .made = 1});
  }
  // The limit is looked at and counted in one step: others may have come meanwhile.
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckOpen());
  shared->arrival = arrivals_++;
  shared->wait.prompts_before = prompts_left_ + static_cast<int64_t>(submitted_.size());
  shared->wait.tokens_before = prompt_tokens_left_;
  prompt_tokens_left_ += first->missing();
  submitted_.push_back(std::move(first));
  ++waiting_count_;
  changed_.NotifyAll();
  return shared->handle;
}

std::vector<int64_t> Generator::StopsOf(const SamplingOptions& sampling) const {
  std::vector<int64_t> stops = sampling.stop_ids;
  if (!sampling.ignore_eos) absl::c_copy(options_.eos_ids, std::back_inserter(stops));
  return stops;
}

Generator::SequencePtr Generator::NewSequence(const std::shared_ptr<SequenceRequest>& request,
                                              int64_t answer) const {
  auto sequence = std::make_unique<Sequence>();
  sequence->request = request;
  sequence->answer = answer;
  sequence->tokens = request->asked.ids;
  const SamplingOptions& sampling = request->asked.sampling;
  std::vector<int64_t> stops = StopsOf(sampling);
  sequence->sampler.emplace(sampling, std::move(stops), static_cast<uint64_t>(answer));
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

void Generator::TakeRequests() {
  std::vector<SequencePtr> taken;
  {
    MutexLock lock(mutex_);
    taken.swap(submitted_);
  }
  for (SequencePtr& sequence : taken) waiting_.push_back(std::move(sequence));
  const int64_t now = engine_.options().clock->NowNs();
  const auto look = [&](Sequence& sequence) {
    if (sequence.request == nullptr) return;  // Another beam has ended all.
    if (sequence.request->handle->cancelled()) {
      return End(sequence, Ending::kError, absl::CancelledError("the request was cancelled"));
    }
    const int64_t deadline = sequence.request->asked.deadline_ns;
    if (deadline > 0 && now > deadline) {
      End(sequence, Ending::kError,
          absl::DeadlineExceededError("the deadline has passed before the last token"));
    }
  };
  for (const SequencePtr& sequence : running_) look(*sequence);
  for (const SequencePtr& sequence : waiting_) look(*sequence);
  EraseEnded();
}

void Generator::EraseEnded() {
  const auto ended = [](const SequencePtr& one) { return one->request == nullptr; };
  std::erase_if(running_, ended);
  const size_t before = waiting_.size();
  std::erase_if(waiting_, ended);
  waiting_count_ -= static_cast<int64_t>(before - waiting_.size());
}

void Generator::Admit() {
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < options_.max_running) {
    const auto next = std::min_element(
        waiting_.begin(), waiting_.end(),
        [](const SequencePtr& a, const SequencePtr& b) { return IsSooner(*a, *b); });
    if (!Begin(**next)) {
      if ((*next)->request != nullptr) return;
      EraseEnded();
      continue;
    }
    SequencePtr sequence = std::move(*next);
    waiting_.erase(next);
    --waiting_count_;
    const auto place = absl::c_find_if(
        running_, [&](const SequencePtr& one) { return IsSooner(*sequence, *one); });
    running_.insert(place, std::move(sequence));
  }
}

int64_t Generator::PagesToTheEnd(const Sequence& sequence) const {
  const int64_t positions = pages_->options().positions;
  const int64_t left = sequence.request->asked.sampling.max_tokens - sequence.drawn();
  const int64_t end = std::min(context_, static_cast<int64_t>(sequence.tokens.size()) + left);
  const int64_t all = (end + positions - 1) / positions;
  return std::max<int64_t>(0, all - static_cast<int64_t>(sequence.pages.size())) +
         CrossPagesMissing(sequence);
}

int64_t Generator::PagesToGoOn(const Sequence& sequence) const {
  const int64_t all =
      static_cast<int64_t>(sequence.tokens.size()) / pages_->options().positions + 1;
  return std::max<int64_t>(0, all - static_cast<int64_t>(sequence.pages.size())) +
         CrossPagesMissing(sequence);
}

bool Generator::Begin(Sequence& sequence) {
  // One that was computed in vain before waits until there is room for all that it and the others
  // may take.
  const bool to_the_end = sequence.set_back > 0;
  const auto pages_for = [&](const Sequence& one) {
    return to_the_end ? PagesToTheEnd(one) : PagesToGoOn(one);
  };
  int64_t others = 0;
  for (const SequencePtr& other : running_) others += pages_for(*other);
  const int64_t left = pages_->available() - others;
  // A sequence takes at least the page of its last token, whatever is found of its prompt, and
  // what was looked up stands until pages are registered or forgotten.
  const int64_t least = sequence.looked_up == pages_->changes() ? sequence.lacked : int64_t{1};
  if (!running_.empty() && least > left) return false;
  const int64_t before = pages_->available();
  FindPrefix(sequence, *pages_);
  // Pages that nobody held are found, and taken from what is available.
  sequence.lacked = pages_for(sequence) + before - pages_->available();
  sequence.looked_up = pages_->changes();
  if (running_.empty() || sequence.lacked <= left) {
    if (encoder_ != nullptr && !Encode(sequence)) return false;
    counts_.cached_tokens += sequence.computed;
    if (sequence.set_back == 0 && sequence.answer == 0) {
      SequenceRequest& request = *sequence.request;
      request.cached_tokens = sequence.computed;
      request.wait.ns = engine_.options().clock->NowNs() - request.start_ns;
    }
    return true;
  }
  DropPages(sequence, *pages_);
  return false;
}

Sequence* Generator::Youngest() const {
  Sequence* youngest = nullptr;
  for (const SequencePtr& one : running_) {
    if (one->request == nullptr || (one->pages.empty() && !one->holds_cross)) continue;
    if (youngest == nullptr || IsSooner(*youngest, *one)) youngest = one.get();
  }
  return youngest;
}

void Generator::SetBack(Sequence& sequence) {
  DropPages(sequence, *pages_);
  ++sequence.set_back;
  ++counts_.set_backs;
  dropped_.push_back(&sequence);
}

bool Generator::MakeRoom(Sequence& sequence, int64_t count) {
  const int64_t positions = pages_->options().positions;
  const int64_t wanted = (sequence.computed + count + positions - 1) / positions;
  while (static_cast<int64_t>(sequence.pages.size()) < wanted) {
    if (const PageId page = pages_->Take(); page != kNoPage) {
      sequence.Keep(page, *pages_);
      continue;
    }
    Sequence* const youngest = Youngest();
    if (youngest == nullptr) return false;
    SetBack(*youngest);
    if (youngest == &sequence) return false;
  }
  return true;
}

int64_t Generator::RoomForDraft(Sequence& sequence, int64_t wanted) {
  const int64_t positions = pages_->options().positions;
  const auto room = [&] {
    return static_cast<int64_t>(sequence.pages.size()) * positions - sequence.computed - 1;
  };
  // Others need a page each before long.
  if (room() < wanted && pages_->available() > static_cast<int64_t>(running_.size())) {
    if (const PageId page = pages_->Take(); page != kNoPage) sequence.Keep(page, *pages_);
  }
  return std::min(wanted, room());
}

StepLimits Generator::Limits() const {
  StepLimits limits = {.tokens = recipes().most_tokens(),
                       .stalling_tokens = recipes().most_tokens(),
                       .picks = options_.max_running};
  if (prompt_token_ns_ > 0) {
    const auto fits =
        static_cast<int64_t>(static_cast<double>(options_.max_stall_ns) / prompt_token_ns_);
    limits.stalling_tokens = std::clamp(fits, kLeastPromptTokens, recipes().most_tokens());
  }
  return limits;
}

bool Generator::Step() {
  encoded_ = false;
  TakeRequests();
  Admit();
  const PlannedStep step = Plan();
  if (step.items.empty()) {
    const bool goes_on = BreakStall();
    Publish();
    return goes_on;
  }
  const int64_t start = engine_.options().clock->NowNs();
  const absl::StatusOr<absl::Span<float>> scores =
      WithinMemory([] { return "a step"; }, [&] { return runner_->Run(step); });
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
    if (one->offered || one->request->handle->unread() >= options_.max_unread) continue;
    ready.push_back(one.get());
  }
  PlannedStep step = PlanStep(
      ready, Limits(), [&](Sequence& sequence, int64_t count) { return MakeRoom(sequence, count); },
      [&](const Sequence& sequence) { return absl::c_linear_search(dropped_, &sequence); });
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
  if (sequence.set_back > kMostSetBacks) {
    return End(sequence, Ending::kError,
               absl::ResourceExhaustedError(absl::StrCat(
                   "the pages of the sequence were taken ", sequence.set_back,
                   " times: ", pages_->options().max_pages, " pages are too few for what runs")));
  }
  const auto place =
      absl::c_find_if(running_, [&](const SequencePtr& one) { return one.get() == &sequence; });
  waiting_.push_front(std::move(*place));
  running_.erase(place);
  ++waiting_count_;
}

void Generator::Learn(const PlannedStep& step, int64_t ns) {
  if (speculation_.has_value()) speculation_->Learn(step, ns);
  ++counts_.steps;
  counts_.prompt_tokens += step.prompt_tokens;
  if (step.prompt_tokens < kLeastPromptTokens) return;
  const double each = static_cast<double>(ns) / static_cast<double>(step.tokens);
  prompt_token_ns_ = prompt_token_ns_ == 0 ? each : 0.8 * prompt_token_ns_ + 0.2 * each;
}

void Generator::FinishStep(const PlannedStep& step, absl::Span<float> scores) {
  size_t row = 0;
  const auto width = static_cast<size_t>(vocabulary_);
  for (const StepItem& item : step.items) {
    Sequence& sequence = *item.sequence;
    if (sequence.request == nullptr) {  // Another beam has ended all.
      row += static_cast<size_t>(item.picks);
      continue;
    }
    if (!sequence.draft.empty()) {
      const auto rows = static_cast<size_t>(item.picks);
      CheckDraft(sequence, scores.subspan(row * width, rows * width));
      row += rows;
      continue;
    }
    sequence.computed += item.count;
    RegisterPages(sequence, *pages_);
    if (item.picks == 0) continue;
    const absl::Span<float> own = scores.subspan(row++ * width, width);
    SequenceRequest& request = *sequence.request;
    if (request.group.has_value()) {
      Offer(sequence, own);
      continue;
    }
    if (!request.forked && request.asked.sampling.n > 1) Fork(sequence, own);
    request.forked = true;
    Draw(sequence, own);
  }
}

void Generator::CheckDraft(Sequence& sequence, absl::Span<float> scores) {
  const std::vector<int64_t> draft = std::exchange(sequence.draft, {});
  const auto width = static_cast<size_t>(vocabulary_);
  size_t right = 0;
  for (size_t row = 0; row <= draft.size(); ++row) {
    ++sequence.computed;
    RegisterPages(sequence, *pages_);
    Draw(sequence, scores.subspan(row * width, width));
    // Keys and values behind the last right token are overwritten later, and read by nobody before.
    if (row == draft.size() || sequence.request == nullptr) break;
    if (sequence.tokens.back() != draft[row]) break;
    ++right;
  }
  const auto drafted = static_cast<int64_t>(draft.size());
  Speculation::Checked(sequence, drafted, static_cast<int64_t>(right));
  counts_.drafts_right += static_cast<int64_t>(right);
  counts_.drafts_wrong += drafted - static_cast<int64_t>(right);
}

void Generator::Fork(Sequence& sequence, absl::Span<const float> scores) {
  const std::shared_ptr<SequenceRequest> request = sequence.request;
  fork_scores_.assign(scores.begin(), scores.end());
  std::vector<float> own;
  request->forked = true;
  request->open_answers = request->asked.sampling.n;
  std::vector<SequencePtr> others;
  for (int64_t answer = 1; answer < request->asked.sampling.n; ++answer) {
    SequencePtr other = NewSequence(request, answer);
    SharePages(sequence, *other, *pages_);
    others.push_back(std::move(other));
  }
  for (SequencePtr& other : others) {
    if (other->missing() > 0) {
      // Without a page for a copy the end of the prompt is computed again.
      DropPages(*other, *pages_);
      waiting_.push_front(std::move(other));
      ++waiting_count_;
      continue;
    }
    Sequence& begun = *other;
    const auto place =
        absl::c_find_if(running_, [&](const SequencePtr& one) { return IsSooner(*other, *one); });
    running_.insert(place, std::move(other));
    own = fork_scores_;
    Draw(begun, absl::MakeSpan(own));
  }
}

void Generator::Draw(Sequence& sequence, absl::Span<float> scores) {
  std::vector<int64_t> allowed;
  if (const auto forced = ForcedNext(sequence); forced.has_value()) {
    allowed.push_back(*forced);
  } else {
    for (const int64_t id : NeverNext(sequence)) scores[static_cast<size_t>(id)] = kNever;
  }
  absl::StatusOr<SampledToken> token = sequence.sampler->Draw(scores, allowed);
  if (!token.ok()) return End(sequence, Ending::kError, token.status());
  if (token->id >= id_rows_) {
    return End(sequence, Ending::kError,
               absl::DataLossError(absl::StrCat("the model drew id ", token->id,
                                                ", and its own ids are below ", id_rows_)));
  }
  const int64_t now = engine_.options().clock->NowNs();
  if (sequence.last_token_ns == 0) {
    options_.events.on_first_token(now - sequence.request->start_ns);
  } else {
    options_.events.on_token(now - sequence.last_token_ns);
  }
  sequence.last_token_ns = now;
  ++counts_.generated_tokens;
  sequence.tokens.push_back(token->id);
  const bool stops = sequence.sampler->IsStop(token->id);
  const bool ends = sequence.drawn() >= sequence.request->asked.sampling.max_tokens ||
                    static_cast<int64_t>(sequence.tokens.size()) >= context_;
  std::vector<SampledToken> tokens = {*std::move(token)};
  if (stops || ends) {
    return End(sequence, stops ? Ending::kStop : Ending::kLength, absl::OkStatus(),
               std::move(tokens));
  }
  Tell(sequence, {.tokens = std::move(tokens)});
}

void Generator::Tell(Sequence& sequence, GenerationEvent event) {
  event.answer = sequence.answer;
  event.cached_tokens = sequence.request->cached_tokens;
  event.wait = sequence.request->wait;
  if (sequence.request->asked.counts_unread) sequence.request->handle->AddUnread(1);
  sequence.request->asked.on_event(event);
}

void Generator::End(Sequence& sequence, Ending finish, const absl::Status& status,
                    std::vector<SampledToken> tokens) {
  if (sequence.request == nullptr) return;
  if (sequence.request->group.has_value()) {
    return EndBeams(std::shared_ptr<SequenceRequest>(sequence.request), status);
  }
  DropPages(sequence, *pages_);
  // An error before the other answers have begun is that of all of them.
  const bool last = --sequence.request->open_answers <= 0;
  Tell(sequence, {.tokens = std::move(tokens), .finish = finish, .status = status, .last = last});
  sequence.request = nullptr;
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
  for (const SequencePtr& sequence : waiting_) End(*sequence, Ending::kError, status);
  EraseEnded();
  if (pages_ != nullptr) Publish();
}

void Generator::Publish() {
  counts_.running = static_cast<int64_t>(running_.size());
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
  stats_ = counts_;
  prompts_left_ = prompts;
  prompt_tokens_left_ = tokens;
  for (const SequencePtr& one : submitted_) prompt_tokens_left_ += one->missing();
}

}  // namespace reprise

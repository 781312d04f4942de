#include "runtime/generate/generator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/paged/place_values.h"

namespace reprise {
namespace {

constexpr int64_t kMostSetBacks = 3;
// The least number of prompt tokens of a step while sequences go on.
constexpr int64_t kLeastPromptTokens = 16;

// Served sooner: a lower priority, where 0 stands for the middle one, then whoever came first.
bool IsSooner(const Sequence& a, const Sequence& b) {
  const auto rank = [](uint64_t priority) { return priority == 0 ? UINT64_MAX / 2 : priority; };
  const uint64_t rank_a = rank(a.request->asked.priority), rank_b = rank(b.request->asked.priority);
  if (rank_a != rank_b) return rank_a < rank_b;
  if (a.request->arrival != b.request->arrival) return a.request->arrival < b.request->arrival;
  return a.answer < b.answer;
}

}  // namespace

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
  ASSIGN_OR_RETURN(PagedForm form, MakePagedForm(Engine::SymbolicGraph(*model_, false), outputs,
                                                 {.context = options_.context}));
  ids_input_ = form.decoder.ids;
  context_ = form.context;
  vocabulary_ = form.vocabulary;
  caches_ = static_cast<int64_t>(form.caches.size());
  id_rows_ = PositionsOfTables(*form.graph, form.graph->FindValue(ids_input_));
  if (id_rows_ <= 0) id_rows_ = vocabulary_;
  const auto page_bytes = static_cast<size_t>(form.page_floats) * sizeof(float);
  const size_t aligned = (page_bytes + 63) / 64 * 64;
  const int64_t count = options_.page_bytes / static_cast<int64_t>(aligned);
  if (count < 1) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a page takes ", aligned, " bytes, and all may take ", options_.page_bytes));
  }
  ASSIGN_OR_RETURN(pages_, PagePool::Create({.page_bytes = aligned, .max_pages = count}));
  ASSIGN_OR_RETURN(stream_, Stream::Create({.cores = engine_.options().cores,
                                            .max_threads = options_.max_threads,
                                            .max_arena_bytes = options_.max_arena_bytes}));
  ASSIGN_OR_RETURN(recipes_, StepRecipes::Make(engine_, *model_, form, options_.step_tokens,
                                               options_.max_running, *stream_));
  Publish();
  return absl::OkStatus();
}

std::string Generator::Describe() const {
  return FormatText(
      "%d caches in pages of %d positions (%.1f KiB each, %d at most), a context of %d, %d recipes "
      "of 1 to %d new tokens",
      static_cast<int>(caches_), static_cast<int>(pages_->options().positions),
      static_cast<double>(pages_->options().page_bytes) / 1024,
      static_cast<int>(pages_->options().max_pages), static_cast<int>(context_),
      static_cast<int>(recipes_.all().size()), static_cast<int>(recipes_.most_tokens()));
}

absl::StatusOr<std::shared_ptr<Generation>> Generator::Submit(GenerationRequest request) {
  const auto size = static_cast<int64_t>(request.ids.size());
  const int64_t positions = pages_->options().positions;
  if (size == 0) return absl::InvalidArgumentError("the prompt has no tokens");
  if (size >= context_) {
    return absl::InvalidArgumentError(absl::StrCat("the prompt has ", size,
                                                   " tokens, and the model's context of ", context_,
                                                   " leaves room for ", context_ - 1));
  }
  const int64_t needed = (size + positions) / positions;
  if (needed > pages_->options().max_pages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the prompt needs ", needed, " pages, and there are ", pages_->options().max_pages));
  }
  for (size_t i = 0; i < request.ids.size(); ++i) {
    if (request.ids[i] >= 0 && request.ids[i] < id_rows_) continue;
    return absl::InvalidArgumentError(absl::StrCat("input '", ids_input_, "': value ",
                                                   request.ids[i], " at ", i,
                                                   " is out of range [0, ", id_rows_ - 1, "]"));
  }
  RETURN_IF_ERROR(request.sampling.Check(vocabulary_));
  int64_t arrival = 0;
  {
    MutexLock lock(mutex_);
    if (waiting_count_ >= options_.max_waiting) {
      return absl::ResourceExhaustedError(absl::StrCat(
          waiting_count_.load(), " requests wait already, and ", options_.max_waiting, " may"));
    }
    arrival = arrivals_++;
  }
  auto shared = std::make_shared<SequenceRequest>();
  shared->asked = std::move(request);
  shared->handle = std::make_shared<Generation>();
  shared->start_ns = engine_.options().clock->NowNs();
  shared->arrival = arrival;
  std::optional<uint64_t>& seed = shared->asked.sampling.seed;
  if (!seed.has_value()) seed = static_cast<uint64_t>(shared->start_ns) + arrival;
  SequencePtr first = NewSequence(shared, 0);
  MutexLock lock(mutex_);
  if (closed_) return absl::UnavailableError("the model is unloaded");
  ++waiting_count_;
  submitted_.push_back(std::move(first));
  changed_.NotifyAll();
  return shared->handle;
}

Generator::SequencePtr Generator::NewSequence(const std::shared_ptr<SequenceRequest>& request,
                                              int64_t answer) const {
  auto sequence = std::make_unique<Sequence>();
  sequence->request = request;
  sequence->answer = answer;
  sequence->tokens = request->asked.ids;
  const SamplingOptions& sampling = request->asked.sampling;
  std::vector<int64_t> stops = sampling.stop_ids;
  if (!sampling.ignore_eos) absl::c_copy(options_.eos_ids, std::back_inserter(stops));
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
    if (!Begin(**next)) return;
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
  return (end + positions - 1) / positions - static_cast<int64_t>(sequence.pages.size());
}

int64_t Generator::PagesToGoOn(const Sequence& sequence) const {
  return static_cast<int64_t>(sequence.tokens.size()) / pages_->options().positions + 1 -
         static_cast<int64_t>(sequence.pages.size());
}

bool Generator::Begin(Sequence& sequence) {
  FindPrefix(sequence);
  // One that was computed in vain before waits until there is room for all that it and the others
  // may take.
  const bool to_the_end = sequence.set_back > 0;
  const auto pages_for = [&](const Sequence& one) {
    return to_the_end ? PagesToTheEnd(one) : PagesToGoOn(one);
  };
  int64_t needed = pages_for(sequence);
  for (const SequencePtr& other : running_) needed += pages_for(*other);
  if (running_.empty() || needed <= pages_->available()) {
    counts_.cached_tokens += sequence.computed;
    if (sequence.set_back == 0) sequence.request->cached_tokens = sequence.computed;
    return true;
  }
  DropPages(sequence);
  return false;
}

void Generator::FindPrefix(Sequence& sequence) {
  const int64_t positions = pages_->options().positions;
  // The last token is computed in any case: its scores are wanted.
  const int64_t most = (static_cast<int64_t>(sequence.tokens.size()) - 1) / positions;
  PageId before = kNoPage;
  for (int64_t page = 0; page < most; ++page) {
    const auto ids = absl::MakeConstSpan(sequence.tokens).subspan(page * positions, positions);
    const PageId found = pages_->Find(before, sequence.request->asked.owner, ids);
    if (found == kNoPage) break;
    sequence.Keep(found, *pages_);
    before = found;
  }
  sequence.registered = static_cast<int64_t>(sequence.pages.size());
  sequence.computed = sequence.registered * positions;
}

void Generator::DropPages(Sequence& sequence) {
  // Those that build on others first.
  for (auto page = sequence.pages.rbegin(); page != sequence.pages.rend(); ++page) {
    pages_->Drop(*page);
  }
  sequence.pages.clear();
  sequence.addresses.clear();
  sequence.registered = sequence.computed = 0;
}

Sequence* Generator::Youngest() const {
  Sequence* youngest = nullptr;
  for (const SequencePtr& one : running_) {
    if (one->request == nullptr || one->pages.empty()) continue;
    if (youngest == nullptr || IsSooner(*youngest, *one)) youngest = one.get();
  }
  return youngest;
}

void Generator::SetBack(Sequence& sequence) {
  DropPages(sequence);
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

StepLimits Generator::Limits() const {
  StepLimits limits = {.tokens = recipes_.most_tokens(),
                       .stalling_tokens = recipes_.most_tokens(),
                       .picks = options_.max_running};
  if (prompt_token_ns_ > 0) {
    const auto fits =
        static_cast<int64_t>(static_cast<double>(options_.max_stall_ns) / prompt_token_ns_);
    limits.stalling_tokens = std::clamp(fits, kLeastPromptTokens, recipes_.most_tokens());
  }
  return limits;
}

bool Generator::Step() {
  TakeRequests();
  Admit();
  std::vector<Sequence*> ready;
  for (const SequencePtr& one : running_) {
    if (one->request->handle->unread() < options_.max_unread) ready.push_back(one.get());
  }
  const PlannedStep step = PlanStep(
      ready, Limits(), [&](Sequence& sequence, int64_t count) { return MakeRoom(sequence, count); },
      [&](const Sequence& sequence) { return absl::c_linear_search(dropped_, &sequence); });
  for (Sequence* sequence : std::exchange(dropped_, {})) {
    if (sequence->set_back > kMostSetBacks) {
      End(*sequence, Ending::kError,
          absl::ResourceExhaustedError(absl::StrCat(
              "the pages of the sequence were taken ", sequence->set_back,
              " times: ", pages_->options().max_pages, " pages are too few for what runs")));
      continue;
    }
    const auto place =
        absl::c_find_if(running_, [&](const SequencePtr& one) { return one.get() == sequence; });
    waiting_.push_front(std::move(*place));
    running_.erase(place);
    ++waiting_count_;
  }
  EraseEnded();
  if (step.items.empty()) {
    Publish();
    return false;
  }
  const int64_t start = engine_.options().clock->NowNs();
  const float* scores = nullptr;
  const absl::Status replayed =
      WithinMemory([] { return "a step"; }, [&] { return Replay(step, scores); });
  if (!replayed.ok()) {
    for (const StepItem& item : step.items) End(*item.sequence, Ending::kError, replayed);
  } else {
    Learn(step, engine_.options().clock->NowNs() - start);
    FinishStep(step, const_cast<float*>(scores));
  }
  EraseEnded();
  Publish();
  return true;
}

void Generator::Learn(const PlannedStep& step, int64_t ns) {
  ++counts_.steps;
  counts_.prompt_tokens += step.prompt_tokens;
  if (step.prompt_tokens < kLeastPromptTokens) return;
  const double each = static_cast<double>(ns) / static_cast<double>(step.tokens);
  prompt_token_ns_ = prompt_token_ns_ == 0 ? each : 0.8 * prompt_token_ns_ + 0.2 * each;
}

void Generator::FillInputs(const PlannedStep& step, const StepRecipe& recipe) {
  std::byte* const base = stream_->inputs();
  for (const TensorSlot& slot : recipe.recipe->inputs) {
    std::byte* const to = base + slot.offset;
    std::memset(to, 0, slot.bytes);
    if (slot.name == kPositionsInput || slot.name == kTablesInput) {
      auto* next = reinterpret_cast<int64_t*>(to);
      for (const StepItem& item : step.items) {
        const auto table = reinterpret_cast<intptr_t>(item.sequence->addresses.data());
        for (int64_t i = 0; i < item.count; ++i) {
          *next++ = slot.name == kTablesInput ? table : item.sequence->computed + i;
        }
      }
    } else if (slot.name == kSegmentsInput) {
      auto* bounds = reinterpret_cast<int32_t*>(to);
      int32_t at = 0, *next = bounds + 1;
      for (const StepItem& item : step.items) {
        at += static_cast<int32_t>(item.count);
        if (item.picked) *next++ = at;
      }
      // Without any, the first token stands in: no scores at all would mean all of them.
      if (next == bounds + 1) *next++ = 1;
      std::fill(next, bounds + slot.bytes / sizeof(int32_t), next[-1]);
    } else {
      int64_t at = 0;
      for (const StepItem& item : step.items) {
        const int64_t* ids = item.sequence->tokens.data() + item.sequence->computed;
        for (int64_t i = 0; i < item.count; ++i, ++at) {
          if (slot.dtype == DType::kInt32) {
            reinterpret_cast<int32_t*>(to)[at] = static_cast<int32_t>(ids[i]);
          } else {
            reinterpret_cast<int64_t*>(to)[at] = ids[i];
          }
        }
      }
    }
  }
}

absl::Status Generator::Replay(const PlannedStep& step, const float*& scores) {
  const StepRecipe& recipe = recipes_.For(step.tokens);
  const int64_t picks =
      absl::c_count_if(step.items, [](const StepItem& one) { return one.picked; });
  RETURN_IF_ERROR(stream_->Reserve(*recipe.recipe));
  FirstDataError errors(*recipe.recipe);
  Frame frame = stream_->MakeFrame(*recipe.recipe, recipe.parameters->addresses(), &errors);
  FillInputs(step, recipe);
  frame.live_rows = step.tokens;
  frame.live_segments = std::max<int64_t>(picks, 1);
  stream_->Replay(*recipe.recipe, frame);
  if (errors.any()) return absl::InternalError("a step met data that it could not use");
  scores = reinterpret_cast<const float*>(frame.outputs[0]);
  return absl::OkStatus();
}

void Generator::FinishStep(const PlannedStep& step, float* scores) {
  int64_t row = 0;
  for (const StepItem& item : step.items) {
    Sequence& sequence = *item.sequence;
    sequence.computed += item.count;
    RegisterPages(sequence);
    if (!item.picked) continue;
    const absl::Span<float> own(scores + row++ * vocabulary_, static_cast<size_t>(vocabulary_));
    SequenceRequest& request = *sequence.request;
    if (!request.forked && request.asked.sampling.n > 1) Fork(sequence, own);
    request.forked = true;
    Draw(sequence, own);
  }
}

void Generator::RegisterPages(Sequence& sequence) {
  const int64_t positions = pages_->options().positions;
  for (; (sequence.registered + 1) * positions <= sequence.computed; ++sequence.registered) {
    const auto page = static_cast<size_t>(sequence.registered);
    const PageId before = page == 0 ? kNoPage : sequence.pages[page - 1];
    const auto ids =
        absl::MakeConstSpan(sequence.tokens)
            .subspan(page * static_cast<size_t>(positions), static_cast<size_t>(positions));
    sequence.pages[page] =
        pages_->Register(sequence.pages[page], before, sequence.request->asked.owner, ids);
    sequence.addresses[page] = pages_->address(sequence.pages[page]);
  }
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
    // Full pages are shared; the last one is written by each, and copied.
    const int64_t full = sequence.computed / pages_->options().positions;
    for (int64_t page = 0; page < full; ++page) {
      pages_->Hold(sequence.pages[page]);
      other->Keep(sequence.pages[page], *pages_);
    }
    other->registered = std::min(sequence.registered, full);
    other->computed = full * pages_->options().positions;
    if (static_cast<int64_t>(sequence.pages.size()) > full) {
      if (const PageId copy = pages_->Take(); copy != kNoPage) {
        std::memcpy(pages_->address(copy), sequence.addresses[full], pages_->options().page_bytes);
        other->Keep(copy, *pages_);
        other->computed = sequence.computed;
      }
    } else {
      other->computed = sequence.computed;
    }
    others.push_back(std::move(other));
  }
  for (SequencePtr& other : others) {
    if (other->missing() > 0) {
      // Without a page for a copy the end of the prompt is computed again.
      DropPages(*other);
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
  absl::StatusOr<SampledToken> token = sequence.sampler->Draw(scores);
  if (!token.ok()) return End(sequence, Ending::kError, token.status());
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
  if (sequence.request->asked.counts_unread) sequence.request->handle->AddUnread(1);
  sequence.request->asked.on_event(event);
}

void Generator::End(Sequence& sequence, Ending finish, const absl::Status& status,
                    std::vector<SampledToken> tokens) {
  if (sequence.request == nullptr) return;
  DropPages(sequence);
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
  MutexLock lock(mutex_);
  stats_ = counts_;
}

}  // namespace reprise

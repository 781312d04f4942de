// Generator: makes tokens with a decoder whose cache the server owns.
//
// Sequences live in pages. A step is one replay over one token of each sequence that goes on, and
// chunks of prompts. Requests join at any step and leave at any token. When pages run out the
// youngest sequence is preempted: its pages are taken, and it is computed again later, to the
// same bits.
//
// Each key has its share of places, pages and prompts, by its weight: a key that has less than its
// share takes places from others while it waits. A client that does not read its events loses its
// places too, until it reads on. Sequences without a place keep their pages until others lack them.
//
//   ASSIGN_OR_RETURN(auto generator, Generator::Create(engine, model, options));
//   ASSIGN_OR_RETURN(auto handle, generator->Submit(std::move(request)));
//   while (generator->Step()) {}
//
// Ownership: shares the model; borrows the engine, which outlives it.
// Threads:   Submit, Cancel and Stats from any; Step and Close from one at a time. Events are told
//            on the thread that steps.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/engine.h"
#include "runtime/generate/carried_steps.h"
#include "runtime/generate/decoder_rules.h"
#include "runtime/generate/generation.h"
#include "runtime/generate/prompt_encoder.h"
#include "runtime/generate/rank_steps.h"
#include "runtime/generate/sequence.h"
#include "runtime/generate/speculation.h"
#include "runtime/generate/step_gate.h"
#include "runtime/generate/step_plan.h"
#include "runtime/generate/step_recipes.h"
#include "runtime/generate/step_runner.h"
#include "runtime/generate/step_times.h"
#include "runtime/passes/paged/paged_form.h"
#include "runtime/sequences/page_pool.h"

namespace reprise {

// Callbacks for events; called on the thread that steps.
struct GeneratorEvents {
  std::function<void(int64_t ns)> on_first_token = [](int64_t) {};  // time since the request came
  std::function<void(int64_t ns)> on_token = [](int64_t) {};        // time since the one before
  std::function<void(const PageChange&)> on_page = nullptr;         // pages that sequences find
  // The scores of each step, before any token is drawn by them; on all ranks, and may be null.
  std::function<void(absl::Span<const float> scores)> on_scores = nullptr;
};

struct GeneratorOptions {
  int64_t page_bytes = int64_t{1} << 30;                    // all pages together take this at most
  ops::CacheDType cache_dtype = ops::CacheDType::kFloat32;  // keys and values in pages have it
  int64_t context = 0;                // positions of a sequence; 0: as many as the model has
  int64_t stated_context = 0;         // a model without tables of positions has it; 0: unknown
  int64_t step_tokens = 512;          // the most that a step computes
  int64_t max_running = 64;           // sequences that are computed side by side
  int64_t max_waiting = 1024;         // requests of a key beyond these are refused
  int64_t max_stall_ns = 20'000'000;  // the most time that prompts may add between two tokens
  int64_t max_unread = 64;            // events that a client has not taken before it waits
  std::vector<int64_t> eos_ids;
  // The other models of a decoder whose prompts go to an encoder; none: it takes them itself.
  EncoderModels encoder;
  DecoderRules rules;
  bool speculate = true;  // several tokens of a sequence in a step, where that pays
  int max_threads = 1;
  size_t max_arena_bytes = size_t{16} << 30;
  GeneratorEvents events;
  StepGate* gate = nullptr;  // that the models share which step; null: there is one. Outlives it
  RankHub* ranks = nullptr;  // the ranks that compute the model together; null: this one alone
  // The number of this generator among those of its model, which meet the same lanes of other
  // ranks. While a lane of a pipeline waits for its next stage, the others compute.
  int lane = 0;
};

struct GeneratorStats {
  int64_t running = 0, waiting = 0, set_back = 0, stalled = 0;  // sequences now
  int64_t pages_used = 0, pages_free = 0, pages_shared = 0;
  int64_t prompt_tokens = 0, generated_tokens = 0, cached_tokens = 0;  // counted from the start
  int64_t steps = 0, set_backs = 0;
  int64_t drafts_right = 0, drafts_wrong = 0;  // tokens: see Speculation
};

// The least number of prompt tokens of a step while sequences go on.
inline constexpr int64_t kLeastPromptTokens = 16;

class Generator {
 public:
  // NOT_FOUND where the model has no cache, UNIMPLEMENTED naming the part that cannot be paged, or
  // divided among the ranks. Other ranks may come later.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(Engine& engine,
                                                           std::shared_ptr<const Model> model,
                                                           GeneratorOptions options);
  ~Generator();

  // INVALID_ARGUMENT with both numbers where the request can never be served, RESOURCE_EXHAUSTED
  // where too many wait, UNAVAILABLE after Close and while a rank is missing, FAILED_PRECONDITION
  // where this is not rank 0.
  absl::StatusOr<std::shared_ptr<Generation>> Submit(GenerationRequest request);
  // Runs one step, if there is anything to do; returns false if nothing is.
  bool Step();
  // Waits until there is something to do, for at most `ns`.
  void Wait(int64_t ns);
  // Ends Wait: the state of a sequence has changed.
  void Wake();
  // Takes no more requests: existing ones end with `status`, at once.
  void Close(const absl::Status& status);

  GeneratorStats Stats() const;
  // OK while tokens can be made; UNAVAILABLE naming a rank that is missing.
  absl::Status state() const { return ranks_ == nullptr ? absl::OkStatus() : ranks_->state(); }
  // Returns the part of the model that this process computes.
  Shard shard() const {
    const RankHub* const ranks = options_.ranks;
    if (ranks == nullptr) return {};
    return {.rank = ranks->rank(), .ranks = ranks->ranks(), .parallelism = ranks->parallelism()};
  }
  bool is_pipeline() const {
    return options_.ranks != nullptr && shard().parallelism == Parallelism::kPipeline;
  }
  const Model& model() const { return *model_; }
  const GeneratorOptions& options() const { return options_; }
  int64_t context() const { return context_; }
  int64_t vocabulary() const { return vocabulary_; }
  // Returns the input that a prompt goes to: the encoder's where there is one. Whether it holds
  // ids.
  const std::string& prompt_input() const {
    return encoder_ == nullptr ? ids_input_ : encoder_->input();
  }
  bool takes_ids() const { return encoder_ == nullptr || encoder_->takes_ids(); }
  bool has_encoder() const { return encoder_ != nullptr; }
  const StepRecipes& recipes() const { return runner_->recipes(); }
  // Computes requests with a client-managed KV cache; null: they are served as by any model,
  // and `carried_refusal` says why.
  const CarriedSteps* carried() const { return carried_.get(); }
  const std::string& carried_refusal() const { return carried_refusal_; }
  // Returns the paged form of the model in words for the log.
  std::string Describe() const;

 private:
  using SequencePtr = std::unique_ptr<Sequence>;

  Generator(Engine& engine, std::shared_ptr<const Model> model, GeneratorOptions options);
  absl::Status Init();

  // Returns UNIMPLEMENTED naming an id that is forced and not the model's.
  absl::Status SettleRules();
  // Meets the other ranks; `plan`: the graph of steps.
  void MeetRanks(absl::string_view plan);
  // Ends sequences whose tokens ranks have lost, or all where one is missing; false then.
  bool KeepWithRanks();
  // Computes the next step of rank 0. False: there was none.
  bool Follow();
  absl::StatusOr<absl::Span<float>> RunStep(const PlannedStep& step);
  absl::StatusOr<absl::Span<float>> RunOver(const PlannedStep& step, Collective* collective);
  // Settles its lists of ids. INVALID_ARGUMENT where the request can never be served.
  absl::Status SettleRequest(SequenceRequest& request) const;
  absl::Status CheckDraws(const SequenceRequest& request) const;
  absl::Status CheckBeamPages(const SequenceRequest& request) const;
  absl::Status CheckPages(const SequenceRequest& request) const;
  absl::Status CheckOpen(const KeyShare& share) const REQUIRES(mutex_);
  std::shared_ptr<KeyShare> ShareOf(const GenerationRequest& request) REQUIRES(mutex_);
  SequencePtr NewSequence(const std::shared_ptr<SequenceRequest>& request, int64_t answer) const;
  // Takes submitted requests, ends cancelled and late ones.
  void TakeRequests();
  void Admit();
  bool Begin(Sequence& sequence);
  // Lets requests that have waited for long go before others of their key.
  void Age(int64_t now_ns);
  // Returns whether its client has not taken its events.
  bool IsStalled(const Sequence& sequence) const;
  // Takes the places of sequences that stall, and requeues those whose clients read again.
  void MoveStalled();
  // Queues it again, before others that came at the same time.
  void PutBack(SequencePtr sequence);
  // Counts the places of keys; one that comes back saves up nothing.
  void CountShares();
  // Returns whether `a` gets a place before `b`: its key has less, or it is sooner within a key.
  static bool IsNext(const Sequence& a, const Sequence& b);
  // Frees a place for a key that has less than another: the last sequence of that key waits
  // again. False: no key has more than this one would have then.
  bool MakeWay(const KeyShare& wanting);
  // Drops the pages of a stalled or waiting sequence. False: none of these holds any.
  bool Reclaim(const Sequence& wanting);
  // Returns a page, if need be of those; kNoPage where all are held by sequences that run.
  PageId TakePage(const Sequence& wanting);
  // Ensures that the pages of the encoder's result for the prompt are there, and held; false where
  // the sequence has ended, or waits for them.
  bool Encode(Sequence& sequence);
  // Returns the pages that its request lacks for the encoder's result.
  int64_t CrossPagesMissing(const Sequence& sequence) const;
  // Pages that it does not hold yet: for its next token, and if it goes on to its last one.
  int64_t PagesToGoOn(const Sequence& sequence) const;
  int64_t PagesToTheEnd(const Sequence& sequence) const;
  // Waits for the turn of the model. False: it has nothing to do, and gives its place back.
  bool BeginTurn();
  // Plans and computes a step.
  bool ComputeStep();
  // Adds `ns` to the times of the keys, by their tokens of the step.
  void ChargeTurn(int64_t ns);
  StepLimits Limits() const;
  PlannedStep Plan();
  // Pages for the first `count` missing tokens; sets the youngest back where there are none.
  bool MakeRoom(Sequence& sequence, int64_t count);
  // Returns the last one of the key that has the most.
  Sequence* Youngest() const;
  void SetBack(Sequence& sequence);
  // Requeues a preempted sequence, or fails it after too many preemptions.
  void WaitAgain(Sequence& sequence);
  bool EndIfTakenTooOften(Sequence& sequence);
  // Returns how many of `wanted` drafted tokens there is room for; preempts no sequence.
  int64_t RoomForDraft(Sequence& sequence, int64_t wanted);
  // `scores`: a row of the vocabulary for each pick.
  void FinishStep(const PlannedStep& step, absl::Span<float> scores);
  // Adds the log-probabilities of a prompt's tokens from the scores of a step.
  void ScorePrompt(Sequence& sequence, absl::Span<const float> scores);
  // Draws from row after row for as long as the draft was right.
  void CheckDraft(Sequence& sequence, absl::Span<float> scores);
  // Draws the next token of `sequence` and tells it.
  void Draw(Sequence& sequence, absl::Span<float> scores);
  // Returns the id that must be drawn next, and those that must not.
  std::optional<int64_t> ForcedNext(const Sequence& sequence) const;
  std::vector<int64_t> NeverNext(const Sequence& sequence) const;
  // Takes the scores of one beam of a search; once all beams have theirs the next beams take over.
  void Offer(Sequence& sequence, absl::Span<const float> scores);
  void NextBeams(SequenceRequest& request, const std::vector<BeamSearch::Child>& children);
  SequencePtr CopyOfBeam(const Sequence& parent);
  // Adds a copy to those that run, or where its parent has no pages to those that wait.
  void AddBeam(SequencePtr beam, bool runs);
  // Ends all beams: with `status`, or with the answers that were found.
  void EndBeams(const std::shared_ptr<SequenceRequest>& request, const absl::Status& status);
  // Beams of a group that wait for each other's pages: the youngest gives its own.
  bool BreakStall();
  // Lets the other answers of a request share the pages of its prompt.
  void Fork(Sequence& sequence, absl::Span<const float> scores);
  void End(Sequence& sequence, Ending finish, const absl::Status& status,
           std::vector<SampledToken> tokens = {});
  void Tell(Sequence& sequence, GenerationEvent event);
  void EraseEnded();
  void Learn(const PlannedStep& step, int64_t ns);
  void Publish();

  Engine& engine_;
  const std::shared_ptr<const Model> model_;
  GeneratorOptions options_;
  // Constant after Init.
  std::unique_ptr<RankSteps> ranks_;       // null: this one alone
  std::unique_ptr<HelperPool> own_cores_;  // null: steps run on the cores of the engine
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<CarriedSteps> carried_;  // borrows the recipes of the runner
  std::string carried_refusal_;
  std::unique_ptr<PagePool> pages_;
  std::unique_ptr<PromptEncoder> encoder_;  // null: the decoder takes prompts itself
  std::string ids_input_;
  int64_t context_ = 0, vocabulary_ = 0, id_rows_ = 0;
  int64_t caches_ = 0, cross_context_ = 0;
  // Used by the thread that steps alone.
  std::vector<SequencePtr> running_;  // sorted by rank, then by arrival
  std::deque<SequencePtr> waiting_;
  std::deque<SequencePtr> stalled_;  // sorted by when they did
  std::vector<Sequence*> dropped_;   // preempted while a step is planned
  StepTimes step_times_;
  bool encoded_ = false;                            // a prompt, for the next step
  SharedUse use_of_steps_;                          // the tokens of keys
  std::vector<std::shared_ptr<KeyShare>> present_;  // shares with sequences here
  std::optional<StepGate::Member> turn_;            // where there is a gate
  std::optional<Speculation> speculation_;
  std::vector<float> fork_scores_;
  // Guarded.
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<SequencePtr> submitted_ GUARDED_BY(mutex_);
  int64_t arrivals_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
  bool woken_ GUARDED_BY(mutex_) = false;
  GeneratorStats stats_ GUARDED_BY(mutex_);
  // Prompts that are not computed yet: after the last step, and the tokens of later ones too.
  int64_t prompts_left_ GUARDED_BY(mutex_) = 0;
  int64_t prompt_tokens_left_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<KeyShare>> shares_ GUARDED_BY(mutex_);  // keyed by key
  std::atomic<uint64_t> seeds_{0};
  GeneratorStats counts_;  // used by the thread that steps alone
};

}  // namespace reprise

// Generation: one request for new tokens, as its asker sees it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/sequences/beam_search.h"
#include "runtime/sequences/page_pool.h"
#include "runtime/sequences/sampling.h"
#include "runtime/sequences/token_constraint.h"

namespace reprise {

// How an answer ended.
enum class Ending {
  kGoesOn,
  kStop,    // a stop id was drawn
  kLength,  // max_tokens, or the context's end
  kError,   // the status says why
};
absl::string_view EndingName(Ending finish);  // "stop", "length", "error"; "" while it goes on

// Why the first token did not come at once.
struct GenerationWait {
  int64_t ns = 0;              // the time before its prompt began to be computed
  int64_t prompts_before = 0;  // whose computation had not ended when it came
  int64_t tokens_before = 0;   // their tokens that were not computed then

  // "80.1 ms: 3 prompts of 2000 tokens before it"; empty: it began at once.
  std::string Text() const;
};

// An id whose log-probability after one token of the prompt is wanted.
struct WatchedId {
  int64_t place = 0;  // that token's
  int64_t id = 0;
};

struct GenerationEvent {
  int64_t answer = 0;  // which one of the request's n
  std::vector<SampledToken> tokens;
  // The prompt, where its scores were asked for: with the first event, the first token without one.
  std::vector<SampledToken> prompt;
  std::optional<float> watched;  // GenerationRequest::watched: with the first event
  Ending finish = Ending::kGoesOn;
  absl::Status status;        // not OK: the answer ends here
  bool last = false;          // the request is done: nothing follows
  int64_t cached_tokens = 0;  // tokens of the prompt that pages of others had
  GenerationWait wait;
};

struct GenerationRequest {
  // The prompt; where there is an encoder, this is its own.
  std::vector<int64_t> ids;
  // With an encoder alone: a prompt that is no ids, float32 [1, ...], and the ids in front of the
  // first new token; empty: the model's.
  std::string numbers;
  std::vector<int64_t> numbers_shape;
  std::vector<int64_t> decoder_ids;
  // They are the whole beginning: tokens that the model's files force after them are not forced.
  bool begins_whole = false;
  // Also returns the log-probabilities of the prompt's tokens, as for tokens of the answer. Then no
  // page of the prompt is shared from other sequences.
  bool scores_prompt = false;
  std::optional<WatchedId> watched;  // needs scores_prompt
  SamplingOptions sampling;
  BeamOptions beams;        // several: answers are searched for, and told when all have ended
  uint64_t priority = 0;    // lower is served first; 0: the default, in the middle
  int64_t deadline_ns = 0;  // 0: none
  PageOwner owner;          // prefixes are shared among requests of one owner alone
  std::string key;          // the key of the request: each key has its share of the generator
  double weight = 1;        // the weight of that share, above 0
  // Makes the constraint on the tokens that may follow in one answer; null: all may.
  std::function<std::unique_ptr<TokenConstraint>()> constrain;
  // Whether an answer ends with the token that was drawn, which is no stop id: called on the thread
  // that steps, before the token is told. Null: it does not. Beams are not asked.
  std::function<bool(int64_t answer, const SampledToken& token)> ends;
  // Events count as not taken until Generation::Took says otherwise.
  bool counts_unread = false;
  // Called on the thread that steps, once a token; the last call has `last` set.
  std::function<void(const GenerationEvent&)> on_event;
};

// The asker holds it. Threads: any.
class Generation {
 public:
  // Cancels it: its pages are free at the next step; one more event reports CANCELLED.
  void Cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }
  // Events that were told, less those that the client has taken: with too many the sequence waits.
  void AddUnread(int64_t events) { unread_ += events; }
  void Took(int64_t events) { unread_ -= events; }
  int64_t unread() const { return unread_; }

 private:
  std::atomic<bool> cancelled_{false};
  std::atomic<int64_t> unread_{0};
};

}  // namespace reprise

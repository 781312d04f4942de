// TextCall: a request of texts, from its texts to the model's answer for each.
//
// Texts become tokens on TextThreads, one after another, and each is an inference of its own, so
// that texts of any length are packed with each other and with texts of other requests. Only some
// are in flight at a time: a request of ten thousand texts takes no more of the queue than one of
// two hundred.
//
//   auto call = TextCall::Start(context, std::move(request), [](TextResult result) { ... });
//   call->Cancel();   // when the client went away
//
// Ownership: the call keeps itself alive until `done`; the objects in the context outlive it.
// Threads:   all methods from any thread. `done` is called once, on a thread of texts or on one
//            that finishes an inference; it must not block.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/types/memory_budget.h"
#include "server/hub/text_models.h"
#include "server/requests/inference.h"
#include "server/requests/token_inputs.h"
#include "server/text/text_threads.h"

namespace reprise {

struct TextContext {
  // The texts that requests hold, and their answers, from one limit for all of them together; null:
  // no account.
  MemoryBudget* held = nullptr;
  const Repository* repository = nullptr;
  const TextModels* models = nullptr;
  Inference* inference = nullptr;
  TextThreads* threads = nullptr;
  const Clock* clock = nullptr;
};

// A text that several items may share; null: the empty one.
using SharedText = std::shared_ptr<const std::string>;
inline SharedText ShareText(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

struct TextItem {
  SharedText text;
  SharedText pair;            // null: there is none
  std::vector<uint32_t> ids;  // not empty: in place of the text
  bool is_query = false;      // a query of late interaction, not a document
};

struct TextRequest {
  std::string model;
  std::string version;  // empty: the newest that is ready
  TextTask task = TextTask::kNone;
  std::vector<TextItem> items;
  Truncation truncation = Truncation::kNone;
  bool offsets = false;  // tokens' places, in characters
  // The name of the prompt that texts begin with; empty: the model's default. "query" makes all
  // texts queries of late interaction; they are documents otherwise.
  std::string prompt_name;
  int64_t deadline_ns = kNoDeadline;
  std::shared_ptr<KeyUse> key;          // the client's: all texts together are one request of it
  std::shared_ptr<RequestTrace> trace;  // null: it is not traced
};

// The model's answer to one text.
struct TextAnswer {
  TextTokens tokens;
  // A vector, weights of words, or a score a label; of kTag and kTokens a row for each token.
  std::vector<float> values;
  int64_t rows = 0;  // 0 except for kTag and kTokens; tokens that are left out have none
};

struct TextResult {
  absl::Status status;  // the others are valid only if OK
  Repository::Found model;
  std::shared_ptr<const TextModel> text;
  std::vector<TextAnswer> answers;  // ordered like TextRequest::items
  int64_t tokens = 0;               // all texts' together
};

class TextCall : public std::enable_shared_from_this<TextCall> {
 public:
  using Done = std::function<void(TextResult)>;

  ~TextCall();
  // Calls `done` exactly once, whatever happens, maybe before it returns. Errors of the result:
  // as of Repository::Find, TextModel and Inference; INVALID_ARGUMENT names the position of the
  // text, or says that the request and its answers are more than all requests may hold;
  // RESOURCE_EXHAUSTED while others hold it.
  static std::shared_ptr<TextCall> Start(const TextContext& context, TextRequest request,
                                         Done done);
  // Drops the texts that wait; `done` is called with CANCELLED.
  void Cancel();

 private:
  TextCall(const TextContext& context, TextRequest request, Done done);
  absl::Status Begin();
  absl::Status ChoosePrompt();
  // Returns the side of a text, where the model tells queries from documents.
  std::optional<TextSide> SideOf(const TextItem& item) const;
  absl::string_view PromptOf(const TextItem& item) const;
  void Work();
  // Returns the text that may be sent now, which is in flight then.
  std::optional<size_t> NextToSend();
  void Send(size_t index);
  absl::StatusOr<EncodedText> Encode(size_t index);
  absl::StatusOr<EncodedText> EncodeItem(const TextItem& item, const TextSource& source) const;
  // Returns OK while the call's texts are still needed.
  absl::Status GoOn() const;
  // Takes `bytes` more from the account, which gets them back when the call is destroyed.
  absl::Status Hold(int64_t bytes);
  void OnAnswer(size_t index, InferResult result);
  absl::Status TakeAnswer(size_t index, const InferResult& result);
  void Fail(absl::Status status);
  void EndFlight();
  void Schedule();

  // Constant once begun.
  const TextContext context_;
  const TextRequest request_;
  const Done done_;
  Repository::Found model_;
  std::shared_ptr<const TextModel> text_;
  std::string prompt_;
  std::string query_prompt_;  // that queries of late interaction begin with
  KeyUse::Ticket ticket_;
  int output_ = 0;  // position of the output that answers
  // The tokens of the first text that pairs share, and which it is. By Work alone.
  SharedText first_text_;
  FirstTokens first_;
  int64_t first_bytes_ = 0;  // the most that were held for them
  // Each is written by its own text alone.
  std::vector<TextAnswer> answers_;
  // Self-synchronised.
  std::atomic<int64_t> held_bytes_{0};
  std::atomic<bool> ended_{false};  // failed_ is an error
  // Guarded.
  Mutex mutex_;
  size_t next_ GUARDED_BY(mutex_) = 0;  // the first text that was not sent
  absl::Status failed_ GUARDED_BY(mutex_);
  int64_t in_flight_ GUARDED_BY(mutex_) = 0;
  bool working_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Call>> calls_ GUARDED_BY(mutex_);
  size_t most_calls_ GUARDED_BY(mutex_) = 64;  // more: those that are over are dropped
};

}  // namespace reprise

// TokenCalls: requests for new tokens, whatever the transport.
//
// A request asks for tokens where its model makes them and its ids are all that it sends: a client
// that carries its own cache sends that as well. Tokens are told one after another, as they come.
// In the place of ids a text may be sent; then the text of the answer is told with its tokens.
//
//   if (calls.Takes(request)) {
//     ASSIGN_OR_RETURN(auto call, calls.Start(request, parameters, on_tokens));
//   }
//
// Threads: all methods from any; tokens are told on the model's own thread, which must not wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/generate/generation.h"
#include "server/generate/sampling_parameters.h"
#include "server/hub/text_models.h"
#include "server/repository/repository.h"
#include "server/repository/server_state.h"
#include "server/requests/request.h"
#include "server/text/text_threads.h"

namespace reprise {

// The names of inputs and outputs that are not the model's.
inline constexpr char kSamplingInput[] = "sampling_parameters";
inline constexpr char kTokensOutput[] = "token_ids";
inline constexpr char kLogprobsOutput[] = "logprobs";
inline constexpr char kTopIdsOutput[] = "top_ids";
inline constexpr char kTopLogprobsOutput[] = "top_logprobs";
inline constexpr char kPromptInput[] = "text_input";
inline constexpr char kTextOutput[] = "text_output";

// The call that an event belongs to.
struct TokenCallInfo {
  std::string model, version, id;
  int64_t prompt_tokens = 0;
  bool logprobs = false;
  int64_t alternatives = 0;  // that are told with each token
  // Set where texts are told, or stop the answer.
  std::shared_ptr<const TextModel> text;
  bool tells_text = false;
};

// The text of an event's tokens.
struct TokenText {
  std::string text;                   // the part of the answer's text that they complete
  const std::string* stop = nullptr;  // the stop text that ended the answer; null: none did
};

// A prompt that is a text.
struct TextPrompt {
  std::string text;
  bool add_special = true;  // the tokenizer's special tokens
};
// Makes the prompt, on a thread of texts; `go_on` is asked as in EncodeOptions.
using PromptMaker = std::function<absl::StatusOr<TextPrompt>(
    const TextModel& model, const std::function<absl::Status()>& go_on)>;

PromptMaker PromptOf(std::string text, bool add_special);

// A request for tokens whose ids came by another way than a tensor. Views of the transport's
// memory.
struct TokenRequest {
  absl::string_view model;
  absl::string_view version;  // empty: the newest that is ready
  absl::string_view id;       // the client's, for reports
  std::shared_ptr<KeyUse> key;
  std::shared_ptr<RequestTrace> trace;  // null: it is not traced
  int64_t deadline_ns = kNoDeadline;    // the transport's, on the server's clock
  std::vector<int64_t> ids;
  // The prompt of an encoder that takes no ids: float32 [1, ...].
  std::string numbers;
  std::vector<int64_t> numbers_shape;
  // The prompt as a text, in the place of ids.
  PromptMaker prompt;
  // The answer's text is told. It is where the prompt is a text.
  bool tells_text = false;
  // See GenerationRequest; a grammar of the parameters comes before it.
  std::function<std::unique_ptr<TokenConstraint>()> constrain = nullptr;
  bool begins_whole = false;
  bool scores_prompt = false;
  std::optional<WatchedId> watched = std::nullopt;
  // A part of a request that the limits of the key have counted.
  bool is_counted = false;
  SamplingParameters parameters;
};

// Where texts become tokens, and tokens texts.
struct TokenTexts {
  const TextModels* models = nullptr;
  TextThreads* threads = nullptr;
};

// Threads: all methods from any.
class TokenCall {
 public:
  explicit TokenCall(Repository::Found model) : model_(std::move(model)) {}

  void Cancel();
  bool cancelled() const { return cancelled_; }
  // Notes that the client took this many of the events.
  void Took(int64_t events);
  // It has become a sequence: until then its prompt is made.
  void Begin(std::shared_ptr<Generation> handle);

 private:
  std::shared_ptr<Generation> handle() const {
    MutexLock lock(mutex_);
    return handle_;
  }

  const Repository::Found model_;
  std::atomic<bool> cancelled_{false};
  mutable Mutex mutex_;
  std::shared_ptr<Generation> handle_ GUARDED_BY(mutex_);
  int64_t took_ GUARDED_BY(mutex_) = 0;  // the count without a handle
};

class TokenCalls {
 public:
  using OnTokens = std::function<void(const TokenCallInfo& info, const GenerationEvent& event,
                                      const TokenText& text)>;

  TokenCalls(const Repository& repository, const ServerState& state, const Clock& clock,
             const TokenTexts& texts)
      : repository_(repository), state_(state), clock_(clock), texts_(texts) {}

  bool Takes(const InferRequest& request) const;
  // With `counts_unread` events that are told count as not taken until the call hears of them
  // (TokenCall::Took): with too many the sequence waits. `parameters` has the ones given one by
  // one; the ones of the input sampling_parameters are added.
  absl::StatusOr<std::shared_ptr<TokenCall>> Start(const InferRequest& request,
                                                   SamplingParameters parameters,
                                                   bool counts_unread, OnTokens on_tokens) const;
  absl::StatusOr<std::shared_ptr<TokenCall>> Start(TokenRequest request, bool counts_unread,
                                                   OnTokens on_tokens) const;

 private:
  struct Beginning;
  // Submits the prepared request.
  absl::Status Submit(Beginning& beginning) const;
  // Makes the prompt and the grammar, then submits. Errors are told as the last event.
  void Prepare(const std::shared_ptr<Beginning>& beginning) const;

  const Repository& repository_;
  const ServerState& state_;
  const Clock& clock_;
  const TokenTexts texts_;
};

}  // namespace reprise

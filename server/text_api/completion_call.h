// CompletionCall: requests of OpenAI's completions and chats, from their prompts to the JSON of
// their answers, whole or as a stream of events.
//
// Ownership: the call keeps itself alive until it is answered. Threads: all methods from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/json/json_writer.h"
#include "server/chat/tool_calls.h"
#include "server/generate/token_calls.h"
#include "server/text_api/text_face.h"

namespace reprise {

// A request that was read.
struct AskedCompletion {
  struct Prompt {
    std::vector<int64_t> ids;  // or:
    PromptMaker text;
    std::string echo;  // the beginning of the answers
  };

  std::string model;
  bool is_chat = false;
  std::vector<Prompt> prompts;
  SamplingParameters parameters;  // each prompt has them
  bool stream = false;
  bool include_usage = false;  // a stream ends with it
  bool echo = false;
  bool scores_prompt = false;       // log-probabilities of the prompt's tokens are answered as well
  const ToolForm* tools = nullptr;  // calls are read from the answers; null: they are not
  ArgumentTypes argument_types;     // the schemas of its tools
  bool short_call_ids = false;      // as some templates want them
  bool one_call = false;            // an answer has one at most: those after it are left out
};

class CompletionCall : public std::enable_shared_from_this<CompletionCall> {
 public:
  // Answers `exchange` once, whatever happens.
  static void Start(const TextApiContext& context, AskedCompletion asked,
                    std::shared_ptr<HttpExchange> exchange);

  CompletionCall(const TextApiContext& context, AskedCompletion asked,
                 std::shared_ptr<HttpExchange> exchange);

 private:
  // A token whose log-probability is told.
  struct ScoredToken {
    SampledToken token;
    bool is_first = false;  // it begins a prompt
    int64_t offset = 0;     // letters in front of it
  };
  struct Choice {
    std::string text;
    std::shared_ptr<const TextModel> model;  // whose tokens are scored
    std::vector<ScoredToken> scored;         // tokens so far, where the answer is told at its end
    int64_t letters = 0;                     // the tokens' so far
    bool has_prompt = false;                 // its tokens are among them
    std::optional<ToolCallReader> reader;
    struct Call {
      std::string id, name, arguments;
    };
    std::vector<Call> calls;
    std::string finish;
    std::optional<std::string> stop;
    bool begun = false;  // a piece was sent
  };

  absl::Status StartPrompts();
  void OnTokens(size_t prompt, const TokenCallInfo& info, const GenerationEvent& event,
                const TokenText& text);
  // Counts the event, and calls Take.
  std::string Count(size_t prompt, const TokenCallInfo& info, const GenerationEvent& event,
                    const TokenText& text) REQUIRES(mutex_);
  // Returns the pieces after the last event.
  std::string LastPieces() const REQUIRES(mutex_);
  // Reads the calls in a part of an answer's text; of several calls the first, where one is wanted.
  ToolCallParts ReadCalls(ToolCallReader& reader, absl::string_view text, bool ended) const;
  // Adds the event to its choice, and returns its pieces of a stream.
  std::string Take(size_t prompt, Choice& choice, int64_t index, const TokenCallInfo& info,
                   const GenerationEvent& event, const TokenText& text) REQUIRES(mutex_);
  // Returns the event's tokens, after those of the prompt where these are told; none where
  // log-probabilities are not asked for.
  std::vector<ScoredToken> ScoredOf(Choice& choice, const TokenCallInfo& info,
                                    const GenerationEvent& event,
                                    const std::vector<SampledToken>& prompt) REQUIRES(mutex_);
  void Fail(const absl::Status& status) REQUIRES(mutex_);
  void CancelAll();

  // The JSON of answers and of a stream's events. `write` writes the members after those that all
  // have.
  using Members = std::function<void(JsonWriter& json)>;
  std::string Body(const Members& write) const;
  std::string Event(const Members& write) const;
  std::string ChunkOf(const Members& choice) const;
  std::string ChunksOf(Choice& choice, int64_t index, const std::string& content,
                       const std::vector<ToolCallPart>& calls,
                       const std::vector<ScoredToken>& scored) const;
  std::string WholeJson() const REQUIRES(mutex_);
  void WriteChoice(const Choice& choice, int64_t index, JsonWriter& json) const;
  static void WriteMessage(const Choice& choice, JsonWriter& json);
  static void WriteParts(const Choice& choice, const std::vector<ToolCallPart>& calls,
                         JsonWriter& json);
  // `model`: not null where there are tokens.
  void WriteLogprobs(const TextModel* model, const std::vector<ScoredToken>& scored,
                     JsonWriter& json) const;
  static void WriteTextTokens(const TextModel* model, const std::vector<ScoredToken>& scored,
                              JsonWriter& json);
  struct Usage {
    int64_t prompt_tokens, new_tokens, cached_tokens, captures;
    double first_token_ms;
  };
  Usage UsageNow() const REQUIRES(mutex_);
  static void WriteUsage(const Usage& usage, JsonWriter& json);

  // `cached`: tokens of the prompt that were computed before.
  void SendPiece(std::string piece, bool last, size_t prompt, int64_t cached) REQUIRES(mutex_);
  void Took(size_t prompt);

  // Constant after construction.
  const TextApiContext context_;
  const AskedCompletion asked_;
  const std::shared_ptr<HttpExchange> exchange_;
  const std::string id_;
  const int64_t created_s_;
  const int64_t start_ns_;
  const int64_t captures_before_;
  // Guarded. The second mutex is locked after the first, if both are.
  Mutex mutex_, calls_mutex_;
  // One a prompt; null: it has not begun yet.
  std::vector<std::shared_ptr<TokenCall>> calls_ GUARDED_BY(calls_mutex_);
  std::vector<int64_t> took_ GUARDED_BY(calls_mutex_);  // events, before it began
  bool is_left_ GUARDED_BY(calls_mutex_) = false;
  std::vector<Choice> choices_ GUARDED_BY(mutex_);
  // The scored tokens of each prompt.
  std::vector<std::vector<SampledToken>> scored_ GUARDED_BY(mutex_);
  size_t open_ GUARDED_BY(mutex_) = 0;  // prompts that are not answered
  bool is_begun_ GUARDED_BY(mutex_) = false;
  bool is_ended_ GUARDED_BY(mutex_) = false;
  int64_t prompt_tokens_ GUARDED_BY(mutex_) = 0;
  int64_t new_tokens_ GUARDED_BY(mutex_) = 0;
  int64_t cached_tokens_ GUARDED_BY(mutex_) = 0;
  int64_t first_token_ns_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise

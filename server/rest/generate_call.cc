#include "server/rest/generate_call.h"

#include <simdjson.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/json/json_writer.h"
#include "server/generate/token_answers.h"
#include "server/rest/json_document.h"
#include "server/rest/reply.h"

namespace reprise {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

struct Asked {
  std::vector<int64_t> ids;
  std::optional<std::string> text;
  std::string numbers;  // float32, of `numbers_shape`
  std::vector<int64_t> numbers_shape;
  std::string id;
  SamplingParameters parameters;
};

absl::StatusOr<std::vector<int64_t>> IdsOf(const element& value) {
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("\"input_ids\" must be a list of integers");
  }
  // Clients that know tensors send rows of them.
  element first;
  if (list.size() == 1 && list.at(0).get(first) == simdjson::SUCCESS && first.is_array()) {
    return IdsOf(first);
  }
  std::vector<int64_t> ids;
  for (const element one : list) {
    int64_t id = 0;
    if (one.get(id) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError("\"input_ids\" must be a list of integers");
    }
    ids.push_back(id);
  }
  return ids;
}

// Takes the numbers of nested lists, all of one length at a depth, as float32.
absl::Status TakeNumbers(const element& value, size_t depth, Asked& asked) {
  const auto refuse = [] {
    return absl::InvalidArgumentError(
        "\"input_features\" must be a list of lists of numbers, of one length each");
  };
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) {
    double number = 0;
    if (depth != asked.numbers_shape.size() || value.get(number) != simdjson::SUCCESS) {
      return refuse();
    }
    const auto narrow = static_cast<float>(number);
    asked.numbers.append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
    return absl::OkStatus();
  }
  constexpr size_t kDeepest = 3;
  int64_t size = 0;
  for ([[maybe_unused]] const element one : list) ++size;
  if (depth == asked.numbers_shape.size()) {
    if (!asked.numbers.empty() || depth == kDeepest) return refuse();
    asked.numbers_shape.push_back(size);
  }
  if (asked.numbers_shape[depth] != size) return refuse();
  for (const element one : list) RETURN_IF_ERROR(TakeNumbers(one, depth + 1, asked));
  return absl::OkStatus();
}

absl::StatusOr<Asked> Decode(absl::string_view body, MemoryBudget& parsing) {
  JsonDocument document(parsing);
  ASSIGN_OR_RETURN(const object root, document.ParseObject(body));
  Asked asked;
  bool has_ids = false;
  const auto take_text = [](const std::string& name, const element& value, std::string& to) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" must be a string"));
    }
    to = std::string(text);
    return absl::OkStatus();
  };
  for (const auto& [key, value] : root) {
    const std::string name(key);
    if (name == "input_ids") {
      ASSIGN_OR_RETURN(asked.ids, IdsOf(value));
      has_ids = true;
    } else if (name == "input_features") {
      RETURN_IF_ERROR(TakeNumbers(value, 0, asked));
      has_ids = true;
    } else if (name == kPromptInput) {
      RETURN_IF_ERROR(take_text(name, value, asked.text.emplace()));
    } else if (name == "parameters") {
      RETURN_IF_ERROR(asked.parameters.SetAll(value));
    } else if (name == "id") {
      RETURN_IF_ERROR(take_text(name, value, asked.id));
    } else if (SamplingParameters::Knows(name)) {
      // Triton's clients send them next to the text.
      RETURN_IF_ERROR(asked.parameters.SetOne(name, value));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("the request has a member \"", name,
                       "\"; it takes text_input, input_ids, input_features, parameters, id, and "
                       "what parameters may have"));
    }
  }
  if (has_ids == asked.text.has_value()) {
    return absl::InvalidArgumentError(has_ids ? "the request has two prompts, a text and ids"
                                              : "\"text_input\" or \"input_ids\" is missing");
  }
  return asked;
}

void WriteIds(const std::vector<SampledToken>& tokens, JsonWriter& json) {
  json.Array([&] {
    for (const SampledToken& token : tokens) json.Value(token.id);
  });
}
void WriteLogprobs(const std::vector<SampledToken>& tokens, JsonWriter& json) {
  json.Array([&] {
    for (const SampledToken& token : tokens) json.Value(double{token.logprob});
  });
}

// Writes a list for each token: {"id", "logprob"}, best first.
void WriteAlternatives(const std::vector<SampledToken>& tokens, JsonWriter& json) {
  json.Array([&] {
    for (const SampledToken& token : tokens) {
      json.Array([&] {
        for (const TokenLogprob& each : token.best) {
          json.Object([&] {
            json.Member("id", each.id);
            json.Member("logprob", double{each.logprob});
          });
        }
      });
    }
  });
}

// Writes the members that all answers begin with.
void WriteHead(const TokenCallInfo& info, JsonWriter& json) {
  json.Member("model_name", info.model);
  json.Member("model_version", info.version);
  if (!info.id.empty()) json.Member("id", info.id);
}

// Writes the last members, with the reason why the first token did not come at once.
void WriteEnd(const TokenCallInfo& info, int64_t cached_tokens, const GenerationWait& wait,
              JsonWriter& json) {
  json.Member("prompt_tokens", info.prompt_tokens);
  json.Member("cached_tokens", cached_tokens);
  if (const std::string text = wait.Text(); !text.empty()) json.Member("waited", text);
}

HttpReply Encode(const TokenCallInfo& info, const WholeTokenAnswer& whole) {
  if (!whole.status().ok()) return StatusReply(whole.status());
  const std::vector<WholeTokenAnswer::Answer>& answers = whole.answers();
  JsonWriter json;
  // A member for each answer, in a list where there are several.
  const auto write_all = [&](const char* name, const auto& write) {
    json.Key(name);
    if (answers.size() == 1) return write(answers[0]);
    json.Array([&] {
      for (const WholeTokenAnswer::Answer& answer : answers) write(answer);
    });
  };
  using Answer = WholeTokenAnswer::Answer;
  json.Object([&] {
    WriteHead(info, json);
    if (info.tells_text) {
      write_all("text_output", [&](const Answer& one) { json.Value(one.text); });
    }
    write_all("token_ids", [&](const Answer& one) { WriteIds(one.tokens, json); });
    if (info.logprobs) {
      write_all("logprobs", [&](const Answer& one) { WriteLogprobs(one.tokens, json); });
    }
    if (info.alternatives > 0) {
      write_all("top_logprobs", [&](const Answer& one) { WriteAlternatives(one.tokens, json); });
    }
    write_all("finish_reason", [&](const Answer& one) { json.Value(EndingName(one.finish)); });
    WriteEnd(info, whole.cached_tokens(), whole.wait(), json);
  });
  return {.content_type = "application/json",
          .fields = {{kCachedTokens, absl::StrCat(whole.cached_tokens())}},
          .body = json.Take()};
}

// The events of a call are gathered here. It lives until the last one.
struct Gathered {
  std::shared_ptr<HttpExchange> exchange;
  WholeTokenAnswer whole;
};

// Returns one event of a stream.
std::string EventText(const TokenCallInfo& info, const GenerationEvent& event,
                      const TokenText& told) {
  JsonWriter json;
  json.Object([&] {
    if (!event.status.ok()) return json.Member("error", ErrorMessage(event.status));
    WriteHead(info, json);
    json.Member("index", event.answer);
    json.Key("token_ids");
    WriteIds(event.tokens, json);
    if (info.tells_text) json.Member("text_output", told.text);
    if (info.logprobs) {
      json.Key("logprobs");
      WriteLogprobs(event.tokens, json);
    }
    if (info.alternatives > 0) {
      json.Key("top_logprobs");
      WriteAlternatives(event.tokens, json);
    }
    if (event.finish != Ending::kGoesOn) json.Member("finish_reason", EndingName(event.finish));
    if (event.last) WriteEnd(info, event.cached_tokens, event.wait, json);
  });
  return absl::StrCat("data: ", json.Take(), "\n\n");
}

// A stream of events, from its first one to its last.
struct EventStream {
  explicit EventStream(std::shared_ptr<HttpExchange> of) : exchange(std::move(of)) {}

  // Notes that the call has begun; pieces may have left by then.
  void Begin(const std::shared_ptr<TokenCall>& begun_call) {
    int64_t owed = 0;
    {
      MutexLock lock(mutex);
      call = begun_call;
      owed = std::exchange(took, 0);
    }
    if (owed > 0) begun_call->Took(owed);
  }
  void Took() {
    std::shared_ptr<TokenCall> taken;
    {
      MutexLock lock(mutex);
      taken = call;
      if (taken == nullptr) ++took;
    }
    if (taken != nullptr) taken->Took(1);
  }

  const std::shared_ptr<HttpExchange> exchange;
  bool begun = false;  // used by the thread that tells events alone
  Mutex mutex;
  std::shared_ptr<TokenCall> call GUARDED_BY(mutex);
  int64_t took GUARDED_BY(mutex) = 0;
};

void TellEvent(const std::shared_ptr<EventStream>& stream, const TokenCallInfo& info,
               const GenerationEvent& event, const TokenText& text) {
  HttpExchange& exchange = *stream->exchange;
  // Before the first token there is no stream yet, and an error has a status of its own.
  if (!stream->begun && !event.status.ok() && event.last) {
    exchange.Answer([why = event.status] { return StatusReply(why); });
    return;
  }
  if (!std::exchange(stream->begun, true)) {
    exchange.Begin({.content_type = "text/event-stream",
                    .fields = {{"Cache-Control", "no-cache"},
                               {kCachedTokens, absl::StrCat(event.cached_tokens)}}});
  }
  exchange.Send(EventText(info, event, text), event.last, [stream] { stream->Took(); });
}

TokenRequest RequestOf(Asked& asked, const HttpExchange& exchange, const std::string& model,
                       const std::string& version) {
  PromptMaker prompt;
  if (asked.text.has_value()) {
    prompt = PromptOf(*std::move(asked.text), asked.parameters.texts.add_special);
  }
  return {.model = model,
          .version = version,
          .id = asked.id,
          .key = exchange.key(),
          .trace = exchange.trace(),
          .ids = std::move(asked.ids),
          .numbers = std::move(asked.numbers),
          .numbers_shape = std::move(asked.numbers_shape),
          .prompt = std::move(prompt),
          .parameters = std::move(asked.parameters)};
}

// Answers with the error, which counts as any other request's.
void Refuse(Inference& inference, const std::shared_ptr<HttpExchange>& exchange,
            const std::string& model, const std::string& version, const absl::Status& why) {
  WhereMemoryAllows(
      [&] { inference.Refuse({.model = model, .version = version, .key = exchange->key()}, why); });
  exchange->Answer([why] { return StatusReply(why); });
}

}  // namespace

void StreamGenerateOverHttp(const TokenCalls& calls, Inference& inference, MemoryBudget& parsing,
                            const std::shared_ptr<HttpExchange>& exchange, const std::string& model,
                            const std::string& version) {
  exchange->SetTold();
  std::shared_ptr<EventStream> stream;
  absl::StatusOr<std::shared_ptr<TokenCall>> call =
      WithinMemory([] { return "the request"; },
                   [&]() -> absl::StatusOr<std::shared_ptr<TokenCall>> {
                     ASSIGN_OR_RETURN(Asked asked, Decode(exchange->request().body, parsing));
                     stream = std::make_shared<EventStream>(exchange);
                     return calls.Start(
                         RequestOf(asked, *exchange, model, version), /*counts_unread=*/true,
                         [stream](const TokenCallInfo& info, const GenerationEvent& event,
                                  const TokenText& text) { TellEvent(stream, info, event, text); });
                   });
  if (!call.ok()) return Refuse(inference, exchange, model, version, call.status());
  stream->Begin(*call);
  WhereMemoryAllows([&] { exchange->OnLeave([call = *call] { call->Cancel(); }); });
}

void StartGenerateOverHttp(const TokenCalls& calls, Inference& inference, MemoryBudget& parsing,
                           const std::shared_ptr<HttpExchange>& exchange, const std::string& model,
                           const std::string& version) {
  exchange->SetTold();
  absl::StatusOr<std::shared_ptr<TokenCall>> call = WithinMemory(
      [] { return "the request"; },
      [&]() -> absl::StatusOr<std::shared_ptr<TokenCall>> {
        ASSIGN_OR_RETURN(Asked asked, Decode(exchange->request().body, parsing));
        auto gathered = std::make_shared<Gathered>();
        gathered->exchange = exchange;
        return calls.Start(RequestOf(asked, *exchange, model, version), /*counts_unread=*/false,
                           [gathered](const TokenCallInfo& info, const GenerationEvent& event,
                                      const TokenText& text) {
                             if (!gathered->whole.Add(event, text)) return;
                             gathered->exchange->Answer(
                                 [gathered, info] { return Encode(info, gathered->whole); });
                           });
      });
  if (!call.ok()) return Refuse(inference, exchange, model, version, call.status());
  WhereMemoryAllows([&] { exchange->OnLeave([call = *call] { call->Cancel(); }); });
}

}  // namespace reprise

// The JSON of completions and chats: whole answers, and the events of a stream.

#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/format_text.h"
#include "server/text_api/completion_call.h"

namespace reprise {
namespace {

// Returns a number for JSON, which has no infinity: -inf becomes one that is as unlikely.
double Logprob(float value) { return std::isfinite(value) ? static_cast<double>(value) : -9999.0; }

// Writes the members of a token as chats have them.
void WriteChatToken(const TextModel& model, int64_t id, float logprob, JsonWriter& json) {
  const std::string bytes = model.tokenizer().Bytes(static_cast<uint32_t>(id));
  json.Member("token", bytes);
  json.Member("logprob", Logprob(logprob));
  json.List("bytes", absl::MakeSpan(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

}  // namespace

std::string CompletionCall::Body(const Members& write) const {
  JsonWriter json;
  json.Object([&] {
    json.Member("id", id_);
    json.Member("object", !asked_.is_chat ? "text_completion"
                          : asked_.stream ? "chat.completion.chunk"
                                          : "chat.completion");
    json.Member("created", created_s_);
    json.Member("model", asked_.model);
    write(json);
  });
  return json.Take();
}

std::string CompletionCall::Event(const Members& write) const {
  return absl::StrCat("data: ", Body(write), "\n\n");
}

std::string CompletionCall::ChunkOf(const Members& choice) const {
  return Event([&](JsonWriter& json) {
    json.Array("choices", [&] { json.Object([&] { choice(json); }); });
    if (asked_.include_usage) json.Member("usage", nullptr);
  });
}

std::string CompletionCall::ChunksOf(Choice& choice, int64_t index, const std::string& content,
                                     const std::vector<ToolCallPart>& calls,
                                     const std::vector<ScoredToken>& scored) const {
  const bool is_first = !std::exchange(choice.begun, true);
  const auto write_end = [&](JsonWriter& json) {
    json.Key("logprobs");
    scored.empty() ? json.Value(nullptr) : WriteLogprobs(choice.model.get(), scored, json);
    json.Key("finish_reason");
    choice.finish.empty() ? json.Value(nullptr) : json.Value(choice.finish);
    if (choice.stop.has_value()) json.Member("stop_reason", *choice.stop);
  };
  if (!asked_.is_chat) {
    return ChunkOf([&](JsonWriter& json) {
      json.Member("index", index);
      json.Member("text", content);
      write_end(json);
    });
  }
  std::string chunks;
  if (is_first) {
    chunks = ChunkOf([&](JsonWriter& json) {
      json.Member("index", index);
      json.Object("delta", [&] {
        json.Member("role", "assistant");
        json.Member("content", "");
      });
      json.Member("logprobs", nullptr);
      json.Member("finish_reason", nullptr);
    });
  }
  return chunks + ChunkOf([&](JsonWriter& json) {
           json.Member("index", index);
           json.Object("delta", [&] {
             if (!content.empty()) json.Member("content", content);
             if (!calls.empty()) WriteParts(choice, calls, json);
           });
           write_end(json);
         });
}

void CompletionCall::WriteParts(const Choice& choice, const std::vector<ToolCallPart>& calls,
                                JsonWriter& json) {
  json.Array("tool_calls", [&] {
    for (const ToolCallPart& part : calls) {
      json.Object([&] {
        json.Member("index", part.index);
        if (!part.name.empty()) {
          json.Member("id", choice.calls[static_cast<size_t>(part.index)].id);
          json.Member("type", "function");
        }
        json.Object("function", [&] {
          if (!part.name.empty()) json.Member("name", part.name);
          json.Member("arguments", part.arguments);
        });
      });
    }
  });
}

void CompletionCall::WriteLogprobs(const TextModel* model, const std::vector<ScoredToken>& scored,
                                   JsonWriter& json) const {
  json.Object([&] {
    if (!asked_.is_chat) return WriteTextTokens(model, scored, json);
    json.Array("content", [&] {
      for (const ScoredToken& each : scored) {
        json.Object([&] {
          WriteChatToken(*model, each.token.id, each.token.logprob, json);
          json.Array("top_logprobs", [&] {
            for (const TokenLogprob& best : each.token.best) {
              json.Object([&] { WriteChatToken(*model, best.id, best.logprob, json); });
            }
          });
        });
      }
    });
    if (!asked_.stream) json.Member("refusal", nullptr);
  });
}

void CompletionCall::WriteTextTokens(const TextModel* model, const std::vector<ScoredToken>& scored,
                                     JsonWriter& json) {
  const auto bytes_of = [&](int64_t id) {
    return model->tokenizer().Bytes(static_cast<uint32_t>(id));
  };
  json.Array("tokens", [&] {
    for (const ScoredToken& each : scored) json.Value(bytes_of(each.token.id));
  });
  // The first token of a prompt has no predecessor that it could follow from.
  json.Array("token_logprobs", [&] {
    for (const ScoredToken& each : scored) {
      each.is_first ? json.Value(nullptr) : json.Value(Logprob(each.token.logprob));
    }
  });
  json.Array("top_logprobs", [&] {
    for (const ScoredToken& each : scored) {
      if (each.is_first) {
        json.Value(nullptr);
        continue;
      }
      json.Object([&] {
        // Tokens of one text share a member: the likeliest, which comes first.
        std::set<std::string> texts;
        for (const TokenLogprob& best : each.token.best) {
          const std::string bytes = bytes_of(best.id);
          if (texts.insert(JsonText(bytes)).second) json.Member(bytes, Logprob(best.logprob));
        }
      });
    }
  });
  json.Array("text_offset", [&] {
    for (const ScoredToken& each : scored) json.Value(each.offset);
  });
}

CompletionCall::Usage CompletionCall::UsageNow() const {
  return {.prompt_tokens = prompt_tokens_,
          .new_tokens = new_tokens_,
          .cached_tokens = cached_tokens_,
          .captures = context_.captures(asked_.model) - captures_before_,
          .first_token_ms = static_cast<double>(first_token_ns_ - start_ns_) * 1e-6};
}

void CompletionCall::WriteUsage(const Usage& usage, JsonWriter& json) {
  json.Object("usage", [&] {
    json.Member("prompt_tokens", usage.prompt_tokens);
    json.Member("completion_tokens", usage.new_tokens);
    json.Member("total_tokens", usage.prompt_tokens + usage.new_tokens);
    json.Object("prompt_tokens_details",
                [&] { json.Member("cached_tokens", usage.cached_tokens); });
  });
  json.Object("reprise", [&] {
    json.Member("cached_tokens", usage.cached_tokens);
    json.Member("captures", usage.captures);
    const std::string first_ms = FormatText("%.3f", usage.first_token_ms);
    json.Member("time_to_first_token_ms", RawJson{first_ms});
  });
}

void CompletionCall::WriteMessage(const Choice& choice, JsonWriter& json) {
  json.Object("message", [&] {
    json.Member("role", "assistant");
    json.Key("content");
    choice.text.empty() && !choice.calls.empty() ? json.Value(nullptr) : json.Value(choice.text);
    json.Member("refusal", nullptr);
    if (choice.calls.empty()) return;
    json.Array("tool_calls", [&] {
      for (const Choice::Call& call : choice.calls) {
        json.Object([&] {
          json.Member("id", call.id);
          json.Member("type", "function");
          json.Object("function", [&] {
            json.Member("name", call.name);
            json.Member("arguments", call.arguments);
          });
        });
      }
    });
  });
}

void CompletionCall::WriteChoice(const Choice& choice, int64_t index, JsonWriter& json) const {
  json.Object([&] {
    json.Member("index", index);
    asked_.is_chat ? WriteMessage(choice, json) : json.Member("text", choice.text);
    json.Key("logprobs");
    asked_.parameters.sampling.logprobs >= 0
        ? WriteLogprobs(choice.model.get(), choice.scored, json)
        : json.Value(nullptr);
    json.Member("finish_reason", choice.finish);
    json.Member("stop_reason", choice.stop);
  });
}

std::string CompletionCall::WholeJson() const {
  const std::vector<Choice>& choices = choices_;
  const Usage usage = UsageNow();
  return Body([&](JsonWriter& json) {
    json.Array("choices", [&] {
      for (size_t i = 0; i < choices.size(); ++i) {
        WriteChoice(choices[i], static_cast<int64_t>(i), json);
      }
    });
    WriteUsage(usage, json);
  });
}

}  // namespace reprise

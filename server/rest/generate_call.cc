#include "server/rest/generate_call.h"

#include <simdjson.h>

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "server/generate/token_answers.h"
#include "server/rest/json_document.h"
#include "server/rest/reply.h"

namespace reprise {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

struct Asked {
  std::vector<int64_t> ids;
  std::string id;
  SamplingParameters parameters;
};

absl::StatusOr<std::vector<int64_t>> IdsOf(const element& value) {
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("\"input_ids\" is no list of integers");
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
      return absl::InvalidArgumentError("\"input_ids\" is no list of integers");
    }
    ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<Asked> Decode(absl::string_view body, MemoryBudget& parsing) {
  JsonDocument document(parsing);
  ASSIGN_OR_RETURN(const element json, document.Parse(body));
  object root;
  if (json.get(root) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("the body is no JSON object");
  }
  Asked asked;
  bool has_ids = false;
  for (const auto& [key, value] : root) {
    const std::string name(key);
    if (name == "input_ids") {
      ASSIGN_OR_RETURN(asked.ids, IdsOf(value));
      has_ids = true;
    } else if (name == "parameters") {
      RETURN_IF_ERROR(asked.parameters.SetAll(simdjson::minify(value)));
    } else if (name == "id") {
      std::string_view text;
      if (value.get(text) != simdjson::SUCCESS) {
        return absl::InvalidArgumentError("\"id\" is no text");
      }
      asked.id = std::string(text);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("the request has a member \"", name,
                                                     "\"; it takes input_ids, parameters, id"));
    }
  }
  if (!has_ids) return absl::InvalidArgumentError("\"input_ids\" is missing");
  return asked;
}

std::string Number(float value) {
  return std::isfinite(value) ? FormatText("%.9g", value) : std::string("null");
}

// The members of one answer.
std::string IdsText(const WholeTokenAnswer::Answer& answer) {
  return absl::StrCat("[",
                      absl::StrJoin(answer.tokens, ",",
                                    [](std::string* out, const SampledToken& token) {
                                      absl::StrAppend(out, token.id);
                                    }),
                      "]");
}
std::string LogprobsText(const WholeTokenAnswer::Answer& answer) {
  return absl::StrCat("[",
                      absl::StrJoin(answer.tokens, ",",
                                    [](std::string* out, const SampledToken& token) {
                                      absl::StrAppend(out, Number(token.logprob));
                                    }),
                      "]");
}

// The text that `of` gives for each answer, in a list where there are several.
template <class Of>
std::string ForAll(const WholeTokenAnswer& whole, Of of) {
  if (whole.answers().size() == 1) return of(whole.answers()[0]);
  std::string list;
  for (const WholeTokenAnswer::Answer& answer : whole.answers()) {
    absl::StrAppend(&list, list.empty() ? "" : ",", of(answer));
  }
  return absl::StrCat("[", list, "]");
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    if (static_cast<unsigned char>(c) < 0x20) continue;
    out.push_back(c);
  }
  return out;
}

HttpReply Encode(const TokenCallInfo& info, const WholeTokenAnswer& whole) {
  if (!whole.status().ok()) return StatusReply(whole.status());
  std::string body = absl::StrCat("{\"model_name\":\"", Escaped(info.model),
                                  "\",\"model_version\":\"", info.version, "\"");
  if (!info.id.empty()) absl::StrAppend(&body, ",\"id\":\"", Escaped(info.id), "\"");
  absl::StrAppend(&body, ",\"token_ids\":", ForAll(whole, IdsText));
  if (info.logprobs) absl::StrAppend(&body, ",\"logprobs\":", ForAll(whole, LogprobsText));
  absl::StrAppend(&body, ",\"finish_reason\":",
                  ForAll(whole,
                         [](const WholeTokenAnswer::Answer& answer) {
                           return absl::StrCat("\"", EndingName(answer.finish), "\"");
                         }),
                  ",\"prompt_tokens\":", info.prompt_tokens,
                  ",\"cached_tokens\":", whole.cached_tokens(), "}");
  return {.content_type = "application/json", .body = std::move(body)};
}

// The events of a call are gathered here. It lives until the last one.
struct Gathered {
  std::shared_ptr<HttpExchange> exchange;
  WholeTokenAnswer whole;
};

}  // namespace

void StartGenerateOverHttp(const TokenCalls& calls, MemoryBudget& parsing,
                           const std::shared_ptr<HttpExchange>& exchange, const std::string& model,
                           const std::string& version) {
  absl::StatusOr<std::shared_ptr<TokenCall>> call = WithinMemory(
      [] { return "the request"; },
      [&]() -> absl::StatusOr<std::shared_ptr<TokenCall>> {
        ASSIGN_OR_RETURN(Asked asked, Decode(exchange->request().body, parsing));
        auto gathered = std::make_shared<Gathered>();
        gathered->exchange = exchange;
        return calls.Start(model, version, asked.id, std::move(asked.ids), asked.parameters,
                           /*counts_unread=*/false,
                           [gathered](const TokenCallInfo& info, const GenerationEvent& event) {
                             if (!gathered->whole.Add(event)) return;
                             gathered->exchange->Answer(
                                 [gathered, info] { return Encode(info, gathered->whole); });
                           });
      });
  if (!call.ok()) {
    exchange->Answer([why = call.status()] { return StatusReply(why); });
    return;
  }
  WhereMemoryAllows([&] { exchange->OnLeave([call = *call] { call->Cancel(); }); });
}

}  // namespace reprise

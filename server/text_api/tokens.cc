#include "server/text_api/tokens.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/rest/json_document.h"
#include "server/text_api/json_text.h"

namespace reprise {
namespace {

// Runs on a thread of texts, and gives the JSON of the answer.
using Work = std::function<absl::StatusOr<std::string>()>;
using Reader = absl::StatusOr<Work> (*)(const Fields& fields,
                                        std::shared_ptr<const TextModel> text);

absl::StatusOr<TextTokens> EncodeAll(const TextModel& model, const std::string& text,
                                     bool add_special) {
  return model.tokenizer().Encode(text, std::nullopt,
                                  {.add_special = add_special,
                                   .offsets = Offsets::kChars,
                                   .max_bytes = model.limits().max_bytes});
}

std::string TokenList(const TextModel& model, const TextTokens& tokens) {
  std::string json = "[";
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const auto [start, end] = tokens.offsets[i];
    absl::StrAppend(&json, i > 0 ? "," : "", "{\"id\":", tokens.ids[i],
                    ",\"text\":", Quoted(model.tokenizer().Token(tokens.ids[i])),
                    ",\"special\":", tokens.special[i] ? "true" : "false");
    if (!tokens.special[i]) absl::StrAppend(&json, ",\"start\":", start, ",\"stop\":", end);
    json += '}';
  }
  return json + "]";
}

absl::StatusOr<Work> ReadInputs(const Fields& fields, std::shared_ptr<const TextModel> text) {
  ASSIGN_OR_RETURN(std::vector<std::string> inputs, fields.WantTexts("inputs"));
  ASSIGN_OR_RETURN(const bool special, fields.Bool("add_special_tokens", true));
  return Work([text, inputs = std::move(inputs), special]() -> absl::StatusOr<std::string> {
    std::string json = "[";
    for (const std::string& input : inputs) {
      ASSIGN_OR_RETURN(const TextTokens tokens, EncodeAll(*text, input, special));
      absl::StrAppend(&json, json.size() > 1 ? "," : "", TokenList(*text, tokens));
    }
    return json + "]";
  });
}

absl::StatusOr<Work> ReadTokenize(const Fields& fields, std::shared_ptr<const TextModel> text) {
  if (fields.Has("inputs")) return ReadInputs(fields, std::move(text));
  ASSIGN_OR_RETURN(std::string prompt, fields.WantText("prompt"));
  ASSIGN_OR_RETURN(const bool special, fields.Bool("add_special_tokens", true));
  ASSIGN_OR_RETURN(const bool words, fields.Bool("return_token_strs", false));
  return Work([text, prompt = std::move(prompt), special, words]() -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const TextTokens tokens, EncodeAll(*text, prompt, special));
    std::string json =
        absl::StrCat("{\"count\":", tokens.ids.size(), ",\"max_model_len\":", text->max_tokens(),
                     ",\"tokens\":[", absl::StrJoin(tokens.ids, ","), "],\"token_strs\":");
    if (!words) return json + "null}";
    json += '[';
    for (size_t i = 0; i < tokens.ids.size(); ++i) {
      if (i > 0) json += ',';
      AppendQuoted(text->tokenizer().Token(tokens.ids[i]), json);
    }
    return json + "]}";
  });
}

absl::StatusOr<Work> ReadDetokenize(const Fields& fields, std::shared_ptr<const TextModel> text) {
  const bool plain = fields.Has("ids");
  const char* const name = plain ? "ids" : "tokens";
  bool alone = false;
  ASSIGN_OR_RETURN(std::vector<TextItem> items, fields.WantItems(name, &alone));
  for (const TextItem& item : items) {
    if (item.ids.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is no list of ids"));
    }
  }
  if (!plain && items.size() != 1) {
    return absl::InvalidArgumentError("\"tokens\" is no list of ids");
  }
  ASSIGN_OR_RETURN(const bool skip, fields.Bool("skip_special_tokens", plain));
  return Work([text, items = std::move(items), skip, plain]() -> absl::StatusOr<std::string> {
    std::string json;
    for (const TextItem& item : items) {
      ASSIGN_OR_RETURN(const std::string decoded, text->tokenizer().Decode(item.ids, skip));
      absl::StrAppend(&json, json.empty() ? "" : ",", Quoted(decoded));
    }
    return plain ? absl::StrCat("[", json, "]") : absl::StrCat("{\"prompt\":", json, "}");
  });
}

absl::StatusOr<Work> ReadWork(const TextApiContext& context, const HttpExchange& exchange,
                              const std::string& model, Reader read, ErrorForm& form) {
  JsonDocument document(*context.parsing);
  ASSIGN_OR_RETURN(const simdjson::dom::element json, document.Parse(exchange.request().body));
  ASSIGN_OR_RETURN(const Fields fields, Fields::Of(json));
  const bool plain = fields.Has("inputs") || fields.Has("ids");
  if (!plain) form = ErrorForm::kOpenAi;
  std::string named = model;
  if (named.empty()) {
    ASSIGN_OR_RETURN(named, fields.Text("model", ""));
  }
  ASSIGN_OR_RETURN(named, ChooseModel(context, named, TextTask::kNone));
  ASSIGN_OR_RETURN(std::shared_ptr<const TextModel> text, FindTextModel(context, named));
  ASSIGN_OR_RETURN(const KeyUse::Ticket ticket,
                   KeyUse::BeginFor(exchange.key(), context.texts.clock->NowNs()));
  ASSIGN_OR_RETURN(Work work, read(fields, std::move(text)));
  return Work([ticket, work = std::move(work)] { return work(); });
}

void Serve(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
           const std::string& model, Reader read) {
  ErrorForm form = ErrorForm::kInference;
  absl::StatusOr<Work> work =
      WithinMemory([] { return "the request"; },
                   [&] { return ReadWork(context, *exchange, model, read, form); });
  if (work.ok()) {
    const bool taken = context.texts.threads->Run([exchange, form, work = *std::move(work)] {
      const auto made = WithinMemory([] { return "the tokens"; }, work);
      const auto answer = std::make_shared<const absl::StatusOr<std::string>>(made);
      exchange->Answer([answer, form] {
        if (!answer->ok()) return TextErrorReply(form, answer->status());
        return HttpReply{.content_type = "application/json", .body = **answer};
      });
    });
    if (taken) return;
    work = absl::UnavailableError("the server is stopping");
  }
  exchange->Answer([form, why = work.status()] { return TextErrorReply(form, why); });
}

}  // namespace

void ServeTokenize(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                   const std::string& model) {
  Serve(context, std::move(exchange), model, ReadTokenize);
}

void ServeDetokenize(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                     const std::string& model) {
  Serve(context, std::move(exchange), model, ReadDetokenize);
}

}  // namespace reprise

#include "server/text_api/tokens.h"

#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/json/json_writer.h"
#include "server/chat/conversation.h"
#include "server/rest/json_document.h"

namespace reprise {
namespace {

// The JSON that a byte of a text may become: a letter that is a token, with its id and its place.
constexpr int64_t kAnswerBytesPerByte = 96;
// The same of an id: its token's text.
constexpr int64_t kAnswerBytesPerId = 64;

// A request of tokens or of their texts, done a text at a time: between them others have their
// turn.
struct TokenWork {
  ErrorForm form = ErrorForm::kInference;
  std::shared_ptr<const TextModel> text;
  TextThreads* threads = nullptr;
  MemoryBudget* held = nullptr;
  int64_t held_bytes = 0;  // taken from it
  KeyUse::Ticket ticket;
  std::atomic<bool> gone{false};           // the client is
  std::shared_ptr<HttpExchange> exchange;  // null once it is answered

  std::vector<std::string> texts;  // these, or ids
  std::vector<TextItem> ids;
  std::optional<Conversation> chat;  // the text is rendered by the model's template
  bool special = true;               // add special tokens, or leave them out
  // The JSON of element i with the text in front of it, and the text after the last.
  std::function<absl::StatusOr<std::string>(const TokenWork&, size_t)> element;
  std::string end;
  size_t next = 0;
  std::string json;

  TokenWork() = default;
  TokenWork(const TokenWork&) = delete;
  ~TokenWork() {
    if (held != nullptr) held->Give(held_bytes);
  }
  size_t count() const { return texts.size() + ids.size(); }
  absl::Status GoOn() const {
    return gone ? absl::CancelledError("the client has disconnected") : threads->GoOn();
  }
};

using Work = std::shared_ptr<TokenWork>;
using Reader = absl::Status (*)(const Fields& fields, TokenWork& work);

absl::StatusOr<TextTokens> EncodeAll(const TokenWork& work, size_t index) {
  const auto go_on = [&work] { return work.GoOn(); };
  std::string chat;
  if (work.chat.has_value()) {
    ASSIGN_OR_RETURN(chat, RenderConversation(*work.chat, *work.text, go_on));
  }
  const std::string& text = work.chat.has_value() ? chat : work.texts[index];
  ASSIGN_OR_RETURN(const TextMemory::Share share,
                   work.threads->memory().Wait(Tokenizer::BytesFor(std::ssize(text)), go_on));
  return work.text->tokenizer().Encode(text, std::nullopt,
                                       {.add_special = work.special,
                                        .offsets = Offsets::kChars,
                                        .max_bytes = work.text->limits().max_bytes,
                                        .go_on = go_on});
}

// Takes the memory of the answer before it is made.
absl::Status Hold(TokenWork& work) {
  int64_t bytes = 0;
  for (const std::string& text : work.texts) bytes += kAnswerBytesPerByte * std::ssize(text);
  if (work.chat.has_value()) bytes += kAnswerBytesPerByte * std::ssize(work.chat->context);
  for (const TextItem& item : work.ids) bytes += kAnswerBytesPerId * std::ssize(item.ids);
  if (work.held == nullptr || work.held->Take(bytes)) {
    work.held_bytes = bytes;
    return absl::OkStatus();
  }
  const int64_t most = work.held->max_bytes();
  if (bytes > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the answer may take ", bytes, " bytes, those for all requests may take ", most));
  }
  return absl::ResourceExhaustedError(absl::StrCat("the answer may take ", bytes,
                                                   " bytes, those for other requests take ",
                                                   work.held->used(), " of ", most));
}

std::string TokenList(const TextModel& model, const TextTokens& tokens) {
  JsonWriter json;
  json.Array([&] {
    for (size_t i = 0; i < tokens.ids.size(); ++i) {
      json.Object([&] {
        json.Member("id", tokens.ids[i]);
        json.Member("text", model.tokenizer().Token(tokens.ids[i]));
        json.Member("special", static_cast<bool>(tokens.special[i]));
        if (tokens.special[i]) return;
        json.Member("start", tokens.offsets[i].first);
        json.Member("stop", tokens.offsets[i].second);
      });
    }
  });
  return json.Take();
}

// Returns the JSON in front of element `index` of a list.
const char* ListPart(size_t index) { return index == 0 ? "[" : ","; }

absl::Status ReadInputs(const Fields& fields, TokenWork& work) {
  ASSIGN_OR_RETURN(work.texts, fields.WantTexts("inputs"));
  ASSIGN_OR_RETURN(work.special, fields.Bool("add_special_tokens", true));
  work.element = [](const TokenWork& of, size_t i) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const TextTokens tokens, EncodeAll(of, i));
    return absl::StrCat(ListPart(i), TokenList(*of.text, tokens));
  };
  work.end = "]";
  return absl::OkStatus();
}

absl::Status TakeConversation(const Fields& fields, TokenWork& work) {
  ASSIGN_OR_RETURN(work.chat, ReadConversation(fields.all(), /*with_tools=*/true));
  work.texts.emplace_back();
  return work.text->Chat(work.chat->has_tools).status();
}

std::string RenderedJson(const std::vector<uint32_t>& ids) {
  JsonWriter json;
  json.Object([&] { json.List("token_ids", ids); });
  return json.Take();
}

absl::Status ReadTokenize(const Fields& fields, TokenWork& work) {
  if (fields.Has("inputs")) return ReadInputs(fields, work);
  const bool is_chat = fields.Has("messages");
  if (is_chat) {
    if (fields.Has("prompt")) {
      return absl::InvalidArgumentError(
          "\"prompt\" and \"messages\" are both given, and only one is allowed");
    }
    RETURN_IF_ERROR(TakeConversation(fields, work));
  } else {
    ASSIGN_OR_RETURN(std::string prompt, fields.WantText("prompt"));
    work.texts.push_back(std::move(prompt));
  }
  // A template writes special tokens itself.
  ASSIGN_OR_RETURN(work.special, fields.Bool("add_special_tokens", !is_chat));
  ASSIGN_OR_RETURN(const bool words, fields.Bool("return_token_strs", false));
  work.element = [words](const TokenWork& of, size_t i) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const TextTokens tokens, EncodeAll(of, i));
    JsonWriter json;
    json.Object([&] {
      json.Member("count", tokens.ids.size());
      json.Member("max_model_len", of.text->max_tokens());
      json.List("tokens", tokens.ids);
      if (!words) return json.Member("token_strs", nullptr);
      json.Array("token_strs", [&] {
        for (const uint32_t id : tokens.ids) json.Value(of.text->tokenizer().Token(id));
      });
    });
    return json.Take();
  };
  return absl::OkStatus();
}

// Takes the prompts of a request of completions, texts or ids.
absl::Status ReadPrompts(const Fields& fields, TokenWork& work) {
  ASSIGN_OR_RETURN(std::vector<TextItem> items, fields.WantItems("prompt"));
  ASSIGN_OR_RETURN(work.special, fields.Bool("add_special_tokens", true));
  if (!items.empty() && !items[0].ids.empty()) {
    work.ids = std::move(items);
  } else {
    for (TextItem& item : items) work.texts.push_back(*item.text);
  }
  work.element = [](const TokenWork& of, size_t i) -> absl::StatusOr<std::string> {
    std::vector<uint32_t> ids;
    if (of.ids.empty()) {
      ASSIGN_OR_RETURN(TextTokens tokens, EncodeAll(of, i));
      ids = std::move(tokens.ids);
    } else {
      ids = of.ids[i].ids;
    }
    return absl::StrCat(ListPart(i), RenderedJson(ids));
  };
  work.end = "]";
  return absl::OkStatus();
}

// Takes the conversation of a request of chats.
absl::Status ReadRenderedChat(const Fields& fields, TokenWork& work) {
  RETURN_IF_ERROR(TakeConversation(fields, work));
  ASSIGN_OR_RETURN(work.special, fields.Bool("add_special_tokens", false));
  work.element = [](const TokenWork& of, size_t i) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const TextTokens tokens, EncodeAll(of, i));
    return RenderedJson(tokens.ids);
  };
  return absl::OkStatus();
}

absl::Status CheckIds(const Tokenizer& tokenizer, const std::vector<uint32_t>& ids) {
  const int64_t size = tokenizer.size();
  for (const uint32_t id : ids) {
    // A vocabulary with gaps has ids beyond its size.
    if (id < size || !tokenizer.Token(id).empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the id ", id, " is out of range: the tokenizer has ", size));
  }
  return absl::OkStatus();
}

absl::Status ReadDetokenize(const Fields& fields, TokenWork& work) {
  const bool plain = fields.Has("ids");
  const char* const name = plain ? "ids" : "tokens";
  ASSIGN_OR_RETURN(work.ids, fields.WantItems(name));
  for (const TextItem& item : work.ids) {
    if (item.ids.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" must be a list of ids"));
    }
  }
  if (!plain && work.ids.size() != 1) {
    return absl::InvalidArgumentError("\"tokens\" must be a list of ids");
  }
  ASSIGN_OR_RETURN(work.special, fields.Bool("skip_special_tokens", plain));
  work.element = [plain](const TokenWork& of, size_t i) -> absl::StatusOr<std::string> {
    const std::vector<uint32_t>& ids = of.ids[i].ids;
    RETURN_IF_ERROR(CheckIds(of.text->tokenizer(), ids));
    ASSIGN_OR_RETURN(const std::string decoded,
                     of.text->tokenizer().Decode(ids, of.special, [&of] { return of.GoOn(); }));
    if (plain) return absl::StrCat(ListPart(i), JsonText(decoded));
    JsonWriter json;
    json.Object([&] { json.Member("prompt", decoded); });
    return json.Take();
  };
  if (plain) work.end = "]";
  return absl::OkStatus();
}

absl::Status ReadWork(const TextApiContext& context, const HttpExchange& exchange,
                      const std::string& model, Reader read, TokenWork& work) {
  JsonDocument document(*context.parsing);
  ASSIGN_OR_RETURN(const simdjson::dom::element json, document.Parse(exchange.request().body));
  ASSIGN_OR_RETURN(const Fields fields, Fields::Of(json));
  const bool plain = fields.Has("inputs") || fields.Has("ids");
  if (!plain) work.form = ErrorForm::kOpenAi;
  std::string named = model;
  if (named.empty()) {
    ASSIGN_OR_RETURN(named, fields.Text("model", ""));
  }
  ASSIGN_OR_RETURN(named, ChooseModel(context, named, TextTask::kNone));
  ASSIGN_OR_RETURN(work.text, FindTextModel(context, named));
  ASSIGN_OR_RETURN(work.ticket, KeyUse::BeginFor(exchange.key(), context.texts.clock->NowNs()));
  work.threads = context.texts.threads;
  work.held = context.texts.held;
  RETURN_IF_ERROR(read(fields, work));
  return Hold(work);
}

// Makes the next element of the answer. True: all are there.
absl::StatusOr<bool> MakeNext(TokenWork& work) {
  RETURN_IF_ERROR(work.GoOn());
  if (work.count() > 0) {
    ASSIGN_OR_RETURN(const std::string element, work.element(work, work.next));
    work.json += element;
    if (++work.next < work.count()) return false;
  } else if (!work.end.empty()) {
    work.json = "[";
  }
  work.json += work.end;
  return true;
}

void AnswerWork(const Work& work, const absl::Status& status) {
  std::function<HttpReply()> make = [] { return HttpReply{.status = 503}; };
  WhereMemoryAllows([&] {
    make = [work, status] {
      if (!status.ok()) return TextErrorReply(work->form, status);
      return HttpReply{.content_type = "application/json", .body = std::move(work->json)};
    };
  });
  const std::shared_ptr<HttpExchange> exchange = std::move(work->exchange);
  exchange->Answer(std::move(make));
}

// Queues the next element's turn.
void TakeTurn(const Work& work) {
  bool taken = false;
  WhereMemoryAllows([&] {
    taken = work->threads->Run([work] {
      const absl::StatusOr<bool> done =
          WithinMemory([] { return "the tokens"; }, [&] { return MakeNext(*work); });
      if (done.ok() && !*done) return TakeTurn(work);
      AnswerWork(work, done.status());
    });
  });
  if (taken) return;
  AnswerWork(work, WithinMemory([] { return "the tokens"; },
                                [&] {
                                  RETURN_IF_ERROR(work->threads->GoOn());
                                  return NoMemoryStatus("the tokens", 0);
                                }));
}

void Serve(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
           const std::string& model, Reader read) {
  Work work;
  const absl::Status begun = WithinMemory([] { return "the request"; },
                                          [&] {
                                            work = std::make_shared<TokenWork>();
                                            return ReadWork(context, *exchange, model, read, *work);
                                          });
  if (!begun.ok()) {
    const ErrorForm form = work == nullptr ? ErrorForm::kInference : work->form;
    return exchange->Answer([form, begun] { return TextErrorReply(form, begun); });
  }
  WhereMemoryAllows([&] {
    exchange->OnLeave([weak = std::weak_ptr<TokenWork>(work)] {
      if (const Work left = weak.lock()) left->gone = true;
    });
  });
  work->exchange = std::move(exchange);
  TakeTurn(work);
}

}  // namespace

void ServeTokenize(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                   const std::string& model) {
  Serve(context, std::move(exchange), model, ReadTokenize);
}

void ServeRender(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                 const std::string& model) {
  Serve(context, std::move(exchange), model, ReadPrompts);
}

void ServeChatRender(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                     const std::string& model) {
  Serve(context, std::move(exchange), model, ReadRenderedChat);
}

void ServeDetokenize(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                     const std::string& model) {
  Serve(context, std::move(exchange), model, ReadDetokenize);
}

}  // namespace reprise

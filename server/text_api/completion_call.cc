#include "server/text_api/completion_call.h"

#include <algorithm>
#include <ctime>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/hash64.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// Returns whether it is a byte of UTF-8 that begins no letter.
bool IsInsideLetter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

constexpr size_t kShortIdSize = 9;

constexpr char kDone[] = "data: [DONE]\n\n";

// Returns an id that no other answer of the process has.
std::string NewId(const char* prefix) {
  static std::atomic<uint64_t> count{0};
  const std::string of = absl::StrCat(std::time(nullptr), " ", ++count);
  return absl::StrCat(prefix, absl::Hex(Hash64(of), absl::kZeroPad16),
                      absl::Hex(Hash64(of + "+"), absl::kZeroPad16));
}

int64_t LettersOf(absl::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(), [](char c) { return !IsInsideLetter(c); });
}

}  // namespace

CompletionCall::CompletionCall(const TextApiContext& context, AskedCompletion asked,
                               std::shared_ptr<HttpExchange> exchange)
    : context_(context),
      asked_(std::move(asked)),
      exchange_(std::move(exchange)),
      id_(NewId(asked_.is_chat ? "chatcmpl-" : "cmpl-")),
      created_s_(std::time(nullptr)),
      start_ns_(context.texts.clock->NowNs()),
      captures_before_(context.captures(asked_.model)) {
  const size_t answers = static_cast<size_t>(std::max<int64_t>(asked_.parameters.sampling.n, 1));
  const size_t prompts = asked_.prompts.size();
  {
    MutexLock lock(calls_mutex_);
    calls_.resize(prompts);
    took_.resize(prompts);
  }
  MutexLock lock(mutex_);
  open_ = prompts;
  scored_.resize(prompts);
  choices_.resize(open_ * answers);
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (asked_.tools != nullptr) choices_[i].reader.emplace(*asked_.tools, asked_.argument_types);
    choices_[i].text = asked_.prompts[i / answers].echo;
  }
}

void CompletionCall::Start(const TextApiContext& context, AskedCompletion asked,
                           std::shared_ptr<HttpExchange> exchange) {
  std::shared_ptr<CompletionCall> call;
  const std::string model = asked.model;
  const absl::Status begun =
      WithinMemory([] { return "the request"; },
                   [&] {
                     call = std::make_shared<CompletionCall>(context, std::move(asked), exchange);
                     return call->StartPrompts();
                   });
  if (!begun.ok()) {
    WhereMemoryAllows([&] {
      context.texts.inference->Refuse({.model = model, .version = "", .key = exchange->key()},
                                      begun);
    });
    if (call == nullptr) {
      return exchange->Answer([begun] { return TextErrorReply(ErrorForm::kOpenAi, begun); });
    }
    {
      MutexLock lock(call->mutex_);
      call->Fail(begun);
    }
    return call->CancelAll();
  }
  WhereMemoryAllows([&] {
    exchange->OnLeave([weak = std::weak_ptr<CompletionCall>(call)] {
      if (const auto left = weak.lock()) left->CancelAll();
    });
  });
}

absl::Status CompletionCall::StartPrompts() {
  for (size_t i = 0; i < asked_.prompts.size(); ++i) {
    TokenRequest request = {.model = asked_.model,
                            .version = "",
                            .id = "",
                            .key = exchange_->key(),
                            .trace = exchange_->trace(),
                            .ids = asked_.prompts[i].ids,
                            .prompt = asked_.prompts[i].text,
                            .tells_text = true,
                            .scores_prompt = asked_.scores_prompt,
                            .parameters = asked_.parameters};
    ASSIGN_OR_RETURN(const std::shared_ptr<TokenCall> call,
                     context_.tokens->Start(
                         std::move(request), /*counts_unread=*/asked_.stream,
                         [self = shared_from_this(), i](
                             const TokenCallInfo& info, const GenerationEvent& event,
                             const TokenText& text) { self->OnTokens(i, info, event, text); }));
    int64_t took = 0;
    bool cancel = false;
    {
      MutexLock lock(calls_mutex_);
      calls_[i] = call;
      took = std::exchange(took_[i], 0);
      cancel = is_left_;
    }
    if (took > 0) call->Took(took);
    if (cancel) call->Cancel();
  }
  return absl::OkStatus();
}

void CompletionCall::Took(size_t prompt) {
  std::shared_ptr<TokenCall> call;
  {
    MutexLock lock(calls_mutex_);
    call = calls_[prompt];
    if (call == nullptr) ++took_[prompt];
  }
  if (call != nullptr) call->Took(1);
}

void CompletionCall::CancelAll() {
  std::vector<std::shared_ptr<TokenCall>> calls;
  {
    MutexLock lock(calls_mutex_);
    is_left_ = true;
    calls = calls_;
  }
  for (const auto& call : calls) {
    if (call != nullptr) call->Cancel();
  }
}

void CompletionCall::SendPiece(std::string piece, bool last, size_t prompt, int64_t cached) {
  if (!std::exchange(is_begun_, true)) {
    HttpReply head = {.content_type = "text/event-stream",
                      .fields = {{"Cache-Control", "no-cache"}}};
    // Other prompts' tokens are not known yet.
    if (asked_.prompts.size() == 1) head.fields.emplace_back(kCachedTokens, absl::StrCat(cached));
    exchange_->Begin(std::move(head));
  }
  exchange_->Send(std::move(piece), last,
                  [self = shared_from_this(), prompt] { self->Took(prompt); });
}

void CompletionCall::Fail(const absl::Status& status) {
  if (std::exchange(is_ended_, true)) return;
  if (!is_begun_) {
    return exchange_->Answer([status] { return TextErrorReply(ErrorForm::kOpenAi, status); });
  }
  const HttpReply reply = TextErrorReply(ErrorForm::kOpenAi, status);
  exchange_->Send(absl::StrCat("data: ", reply.body, "\n\n", kDone), /*last=*/true, [] {});
}

void CompletionCall::OnTokens(size_t prompt, const TokenCallInfo& info,
                              const GenerationEvent& event, const TokenText& text) {
  bool failed = false, took = false, whole = false;
  {
    MutexLock lock(mutex_);
    if (is_ended_) return;
    failed = !event.status.ok();
    if (failed) {
      Fail(event.status);
    } else {
      std::string piece = Count(prompt, info, event, text);
      is_ended_ = open_ == 0;
      whole = is_ended_ && !asked_.stream;
      if (asked_.stream) {
        if (is_ended_) piece += LastPieces();
        took = piece.empty();
        if (!took) SendPiece(std::move(piece), is_ended_, prompt, event.cached_tokens);
      }
    }
  }
  if (took) Took(prompt);
  if (failed && asked_.prompts.size() > 1) CancelAll();
  if (!whole) return;
  exchange_->Answer([self = shared_from_this()] {
    MutexLock lock(self->mutex_);
    return HttpReply{.content_type = "application/json",
                     .fields = {{kCachedTokens, absl::StrCat(self->cached_tokens_)}},
                     .body = self->WholeJson()};
  });
}

std::string CompletionCall::Count(size_t prompt, const TokenCallInfo& info,
                                  const GenerationEvent& event, const TokenText& text) {
  if (first_token_ns_ == 0) first_token_ns_ = context_.texts.clock->NowNs();
  const size_t answers = choices_.size() / asked_.prompts.size();
  const size_t index = prompt * answers + static_cast<size_t>(event.answer);
  new_tokens_ += static_cast<int64_t>(event.tokens.size());
  if (!event.prompt.empty()) scored_[prompt] = event.prompt;
  std::string piece = Take(prompt, choices_[index], static_cast<int64_t>(index), info, event, text);
  if (event.last) {
    prompt_tokens_ += info.prompt_tokens;
    cached_tokens_ += event.cached_tokens;
    --open_;
  }
  return piece;
}

std::string CompletionCall::LastPieces() const {
  if (!asked_.include_usage) return kDone;
  const Usage usage = UsageNow();
  return Event([&](JsonWriter& json) {
           json.Array("choices", [] {});
           WriteUsage(usage, json);
         }) +
         kDone;
}

ToolCallParts CompletionCall::ReadCalls(ToolCallReader& reader, absl::string_view text,
                                        bool ended) const {
  ToolCallParts parts;
  const auto add = [&](ToolCallParts more, bool has_call) {
    if (!has_call) parts.content += more.content;
    for (ToolCallPart& part : more.calls) {
      if (part.index > 0 && asked_.one_call) continue;
      // Clients take the entries of the first chunk as they are: a call has one of them.
      if (!parts.calls.empty() && parts.calls.back().index == part.index) {
        parts.calls.back().arguments += part.arguments;
      } else {
        parts.calls.push_back(std::move(part));
      }
    }
  };
  // Where one call is wanted, no text follows it: letter by letter shows which text does.
  while (!text.empty()) {
    size_t size = asked_.one_call ? 1 : text.size();
    while (size < text.size() && IsInsideLetter(text[size])) ++size;
    const bool has_call = asked_.one_call && reader.calls() > 0;
    add(reader.Push(text.substr(0, size)), has_call);
    text.remove_prefix(size);
  }
  const bool has_call = asked_.one_call && reader.calls() > 0;
  if (ended) add(reader.Finish(), has_call);
  return parts;
}

std::string CompletionCall::Take(size_t prompt, Choice& choice, int64_t index,
                                 const TokenCallInfo& info, const GenerationEvent& event,
                                 const TokenText& text) {
  const bool ended = event.finish != Ending::kGoesOn;
  if (text.stop != nullptr) choice.stop = *text.stop;
  std::vector<ScoredToken> scored = ScoredOf(choice, info, event, scored_[prompt]);
  ToolCallParts parts;
  if (choice.reader.has_value()) {
    parts = ReadCalls(*choice.reader, text.text, ended);
  } else {
    parts.content = text.text;
  }
  for (ToolCallPart& part : parts.calls) {
    const auto place = static_cast<size_t>(part.index);
    if (choice.calls.size() <= place) {
      std::string call_id = NewId(asked_.short_call_ids ? "" : "call_");
      if (asked_.short_call_ids) call_id.resize(kShortIdSize);
      choice.calls.push_back({.id = std::move(call_id), .name = part.name});
    }
    choice.calls[place].arguments += part.arguments;
  }
  if (ended) {
    const bool called = !choice.calls.empty() && event.finish == Ending::kStop;
    choice.finish = called ? "tool_calls" : std::string(EndingName(event.finish));
  }
  if (!asked_.stream) {
    std::move(scored.begin(), scored.end(), std::back_inserter(choice.scored));
    choice.text += parts.content;
    return "";
  }
  std::string content = std::move(parts.content);
  if (!choice.begun && !asked_.is_chat) content = choice.text + content;
  if (content.empty() && parts.calls.empty() && scored.empty() && !ended) return "";
  return ChunksOf(choice, index, content, parts.calls, scored);
}

std::vector<CompletionCall::ScoredToken> CompletionCall::ScoredOf(
    Choice& choice, const TokenCallInfo& info, const GenerationEvent& event,
    const std::vector<SampledToken>& prompt) {
  std::vector<ScoredToken> scored;
  if (!info.logprobs || info.text == nullptr) return scored;
  choice.model = info.text;
  // A stop id that ended the answer is not a part of it.
  const bool by_id = event.finish == Ending::kStop && !choice.stop && !event.tokens.empty();
  const size_t told = event.tokens.size() - (by_id ? 1 : 0);
  const auto add = [&](const SampledToken& token, bool is_first) {
    scored.push_back({.token = token, .is_first = is_first, .offset = choice.letters});
    if (asked_.is_chat) return;
    choice.letters += LettersOf(info.text->tokenizer().Bytes(static_cast<uint32_t>(token.id)));
  };
  if (!std::exchange(choice.has_prompt, true)) {
    for (size_t i = 0; i < prompt.size(); ++i) add(prompt[i], i == 0);
  }
  for (size_t i = 0; i < told; ++i) add(event.tokens[i], false);
  return scored;
}

}  // namespace reprise

#include "server/text_api/transcription_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/hub/languages.h"
#include "server/speech/spoken_rules.h"
#include "server/speech/spoken_window.h"

namespace reprise {
namespace {

// Those of OpenAI's Whisper.
constexpr float kTemperatures[] = {0, 0.2f, 0.4f, 0.6f, 0.8f, 1};

constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();

// Writes a number in the form that `format` gives it.
void WriteAs(const char* name, const absl::FormatSpec<double>& format, double value,
             JsonWriter& json) {
  const std::string number = FormatText(format, value);
  json.Member(name, RawJson{number});
}
void WriteSeconds(const char* name, double seconds, JsonWriter& json) {
  WriteAs(name, "%.2f", seconds, json);
}

const SpeechFacts& FactsOf(const AskedTranscript& asked) { return **asked.text->package().speech; }

}  // namespace

absl::StatusOr<const SpeechFacts*> SpeechOf(const TextModel& model) {
  const auto& speech = model.package().speech;
  if (!speech.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the model makes no texts of sound: ", speech.status().message()));
  }
  if (!speech->has_value()) {
    return absl::FailedPreconditionError(
        "the model makes no texts of sound: its folder has no preprocessor_config.json of Whisper");
  }
  const SpeechFacts& facts = **speech;
  const std::pair<int64_t, const char*> needed[] = {
      {facts.start, "decoder_start_token_id"},
      {facts.end, "eos_token_id"},
      {facts.languages.empty() ? 0 : facts.transcribe, "task_to_id"}};
  for (const auto& [id, name] : needed) {
    if (id != SpeechFacts::kNone) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the model makes no texts of sound: neither generation_config.json nor the tokenizer has ",
        name));
  }
  return &facts;
}

TranscriptionCall::TranscriptionCall(const TextApiContext& context, AskedTranscript asked,
                                     std::shared_ptr<HttpExchange> exchange)
    : context_(context),
      asked_(std::move(asked)),
      facts_(FactsOf(asked_)),
      exchange_(std::move(exchange)),
      language_(asked_.language) {}

void TranscriptionCall::Start(const TextApiContext& context, AskedTranscript asked,
                              std::shared_ptr<HttpExchange> exchange) {
  std::shared_ptr<TranscriptionCall> call;
  const absl::Status begun = WithinMemory(
      [] { return "the request"; },
      [&]() -> absl::Status {
        call = std::make_shared<TranscriptionCall>(context, std::move(asked), exchange);
        ASSIGN_OR_RETURN(call->ticket_,
                         KeyUse::BeginFor(exchange->key(), context.texts.clock->NowNs()));
        return absl::OkStatus();
      });
  if (!begun.ok()) {
    return exchange->Answer([begun] { return TextErrorReply(ErrorForm::kOpenAi, begun); });
  }
  WhereMemoryAllows([&] {
    exchange->OnLeave([weak = std::weak_ptr<TranscriptionCall>(call)] {
      if (const auto left = weak.lock()) left->Leave();
    });
  });
  call->Run(&TranscriptionCall::Open);
}

void TranscriptionCall::Run(absl::Status (TranscriptionCall::*part)()) {
  bool taken = false;
  WhereMemoryAllows([&] {
    taken = context_.texts.threads->Run([self = shared_from_this(), part] {
      const absl::Status done = WithinMemory([] { return "the transcript"; },
                                             [&]() -> absl::Status {
                                               RETURN_IF_ERROR(self->GoOn());
                                               return (*self.*part)();
                                             });
      if (!done.ok()) self->Refuse(done);
    });
  });
  if (!taken) Refuse(absl::UnavailableError("the server is stopping"));
}

void TranscriptionCall::Refuse(const absl::Status& status) {
  WhereMemoryAllows([&] {
    context_.texts.inference->Refuse(
        {.model = asked_.model, .version = "", .key = exchange_->key()}, status);
  });
  Fail(status);
}

absl::Status TranscriptionCall::GoOn() const {
  return is_left_ ? absl::CancelledError("the client has disconnected")
                  : context_.texts.threads->GoOn();
}

absl::Status TranscriptionCall::Open() {
  ASSIGN_OR_RETURN(model_, context_.texts.repository->Find(asked_.model, ""));
  if (model_.servable->generation == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "model \"", asked_.model, "\" makes no tokens: ", model_.servable->generation_refusal));
  }
  ASSIGN_OR_RETURN(
      reader_,
      AudioReader::Open(asked_.file, {.rate = facts_.spectrum.rate,
                                      .most_seconds = asked_.text->limits().most_audio_seconds}));
  spectrum_.emplace(facts_.spectrum);
  RETURN_IF_ERROR(reader_->Read(facts_.spectrum.samples + 1, samples_));
  // Where there is more than a window, times say where the next one begins.
  const bool is_long = std::ssize(samples_) > facts_.spectrum.samples;
  const bool wants = asked_.form != TranscriptForm::kJson && asked_.form != TranscriptForm::kText;
  has_times_ = facts_.has_times() && (is_long || wants);
  // A text that is told word by word cannot be taken back.
  const bool is_tried_again = asked_.sampling.temperature == 0 && !IsToldByWords();
  temperatures_ = is_tried_again
                      ? std::vector<float>(std::begin(kTemperatures), std::end(kTemperatures))
                      : std::vector<float>{asked_.sampling.temperature};
  transcript_.emplace(facts_, asked_.text->tokenizer(), has_times_);
  return BeginWindow();
}

absl::Status TranscriptionCall::BeginWindow() {
  const int64_t most = facts_.spectrum.samples;
  RETURN_IF_ERROR(reader_->Read(most + 1 - std::ssize(samples_), samples_));
  if (samples_.empty()) {
    Finish();
    return absl::OkStatus();
  }
  window_.samples = std::min<int64_t>(std::ssize(samples_), most);
  attempt_ = 0;
  ASSIGN_OR_RETURN(
      const std::vector<float> features,
      spectrum_->Of(absl::MakeSpan(samples_).subspan(0, static_cast<size_t>(window_.samples)),
                    [this] { return GoOn(); }));
  features_.resize(features.size() * sizeof(float));
  std::memcpy(features_.data(), features.data(), features_.size());
  return language_.empty() ? AskForLanguage() : AskForTokens();
}

absl::Status TranscriptionCall::Ask(TokenRequest request, TokenCalls::OnTokens on_tokens) {
  request.model = asked_.model;
  request.key = exchange_->key();
  request.numbers_shape = {1, facts_.spectrum.mels, facts_.spectrum.frames()};
  request.begins_whole = request.is_counted = true;
  int64_t place = 0;
  {
    MutexLock lock(mutex_);
    place = ++asked_count_;
  }
  ASSIGN_OR_RETURN(
      std::shared_ptr<TokenCall> call,
      context_.tokens->Start(std::move(request), /*counts_unread=*/false, std::move(on_tokens)));
  {
    MutexLock lock(mutex_);
    // The window may be over, and a later one have begun.
    if (place == asked_count_) call_ = call;
  }
  if (is_left_) call->Cancel();
  return absl::OkStatus();
}

absl::Status TranscriptionCall::AskForLanguage() {
  TokenRequest request;
  request.numbers = features_;
  request.parameters.decoder_ids = {facts_.start};
  SamplingOptions& sampling = request.parameters.sampling;
  sampling.temperature = 0;
  sampling.max_tokens = 1;
  for (const auto& [code, id] : facts_.languages) sampling.allowed_ids.push_back(id);
  return Ask(std::move(request),
             [self = shared_from_this()](const TokenCallInfo&, const GenerationEvent& event,
                                         const TokenText&) { self->OnLanguage(event); });
}

void TranscriptionCall::OnLanguage(const GenerationEvent& event) {
  for (const SampledToken& token : event.tokens) {
    for (const auto& [code, id] : facts_.languages) {
      if (id == token.id) language_ = code;
    }
  }
  if (!event.last) return;
  if (!event.status.ok()) return Fail(event.status);
  if (language_.empty()) return Fail(absl::InternalError("no language was drawn"));
  Run(&TranscriptionCall::AskForTokens);
}

absl::StatusOr<std::vector<int64_t>> TranscriptionCall::Beginning() const {
  std::vector<int64_t> ids;
  const std::string prompt(absl::StripAsciiWhitespace(asked_.prompt));
  const bool is_first = window_.seek == 0;
  if (is_first && !prompt.empty() && facts_.previous != SpeechFacts::kNone) {
    const TextLimits& limits = asked_.text->limits();
    ASSIGN_OR_RETURN(const TextTokens tokens,
                     asked_.text->tokenizer().Encode(absl::StrCat(" ", prompt), std::nullopt,
                                                     {.add_special = false,
                                                      .max_bytes = limits.max_bytes,
                                                      .go_on = [this] { return GoOn(); }}));
    // The last of it, as many as leave the half of the context.
    const int64_t context = model_.servable->generation->generator().context();
    const auto most = static_cast<size_t>(std::max<int64_t>(context / 2 - 1, 0));
    const size_t kept = std::min(tokens.ids.size(), most);
    ids.push_back(facts_.previous);
    ids.insert(ids.end(), tokens.ids.end() - static_cast<ptrdiff_t>(kept), tokens.ids.end());
  }
  ids.push_back(facts_.start);
  if (!facts_.languages.empty()) {
    ids.push_back(facts_.languages.at(language_));
    ids.push_back(asked_.translates ? facts_.translate : facts_.transcribe);
  }
  if (!has_times_ && facts_.has_times()) ids.push_back(facts_.no_timestamps);
  return ids;
}

absl::Status TranscriptionCall::AskForTokens() {
  TokenRequest request;
  request.numbers = features_;
  ASSIGN_OR_RETURN(request.parameters.decoder_ids, Beginning());
  const std::vector<int64_t>& ids = request.parameters.decoder_ids;
  if (facts_.no_speech != SpeechFacts::kNone) {
    const auto start = std::find(ids.rbegin(), ids.rend(), facts_.start);
    request.watched = {.place = std::distance(start, ids.rend()) - 1, .id = facts_.no_speech};
    request.scores_prompt = true;
  }
  window_.ids.clear();
  window_.scores = {.temperature = temperatures_[attempt_]};
  request.parameters.sampling = asked_.sampling;
  request.parameters.sampling.temperature = window_.scores.temperature;
  request.parameters.sampling.max_tokens = kNoLimit;
  std::optional<TimeRules> times;
  if (has_times_) times.emplace(facts_);
  logprobs_ = std::make_shared<double>(0);
  request.constrain = [times, logprobs = logprobs_] {
    return std::make_unique<SpokenRules>(times, logprobs);
  };
  if (IsToldByWords()) texts_.emplace(asked_.text->tokenizer(), /*skip_special=*/true);
  return Ask(std::move(request),
             [self = shared_from_this()](const TokenCallInfo&, const GenerationEvent& event,
                                         const TokenText&) { self->OnTokens(event); });
}

void TranscriptionCall::OnTokens(const GenerationEvent& event) {
  if (event.watched.has_value()) window_.scores.no_speech = std::exp(*event.watched);
  for (const SampledToken& token : event.tokens) {
    if (token.id == facts_.end) continue;
    window_.ids.push_back(token.id);
    if (texts_.has_value() && transcript_->IsText(token.id)) {
      TellText(texts_->Push(static_cast<uint32_t>(token.id)));
    }
  }
  if (!event.last) return;
  if (!event.status.ok()) return Fail(event.status);
  // The token that ended it counts, as in OpenAI's Whisper.
  window_.scores.logprob = *logprobs_ / static_cast<double>(window_.ids.size() + 1);
  Run(&TranscriptionCall::EndWindow);
}

absl::Status TranscriptionCall::EndWindow() {
  SpokenScores& scores = window_.scores;
  ASSIGN_OR_RETURN(const std::string text, transcript_->TextOf(window_.ids));
  ASSIGN_OR_RETURN(scores.compression_ratio, CompressionRatio(text));
  if (IsDoubtful(scores, asked_.thresholds) && attempt_ + 1 < temperatures_.size()) {
    ++attempt_;
    return AskForTokens();
  }
  if (texts_.has_value()) TellText(texts_->Finish());
  const size_t told = transcript_->segments().size();
  int64_t taken = window_.samples;
  if (IsToldByWords() || !IsSilent(scores, asked_.thresholds)) {
    ASSIGN_OR_RETURN(taken, transcript_->Add(window_));
  }
  if (asked_.stream && has_times_) {
    for (size_t i = told; i < transcript_->segments().size(); ++i) {
      TellText(transcript_->segments()[i].text);
    }
  }
  samples_.erase(samples_.begin(), samples_.begin() + static_cast<ptrdiff_t>(taken));
  window_.seek += taken;
  return BeginWindow();
}

void TranscriptionCall::Leave() {
  is_left_ = true;
  std::shared_ptr<TokenCall> call;
  {
    MutexLock lock(mutex_);
    call = call_;
  }
  if (call != nullptr) call->Cancel();
}

void TranscriptionCall::Tell(const std::string& json, bool last) {
  if (!std::exchange(is_begun_, true)) {
    exchange_->Begin(
        {.content_type = "text/event-stream", .fields = {{"Cache-Control", "no-cache"}}});
  }
  exchange_->Send(absl::StrCat("data: ", json, "\n\n"), last, [self = shared_from_this()] {});
}

void TranscriptionCall::TellText(absl::StatusOr<std::string> part) {
  // A text that cannot be decoded ends the call where its segment is made.
  if (!part.ok() || part->empty()) return;
  JsonWriter json;
  json.Object([&] {
    json.Member("type", "transcript.text.delta");
    json.Member("delta", *part);
  });
  Tell(json.Take(), /*last=*/false);
}

void TranscriptionCall::Fail(const absl::Status& status) {
  if (std::exchange(is_ended_, true)) return;
  ticket_ = nullptr;
  if (is_begun_) {
    return Tell(TextErrorReply(ErrorForm::kOpenAi, status).body, /*last=*/true);
  }
  exchange_->Answer([status] { return TextErrorReply(ErrorForm::kOpenAi, status); });
}

void TranscriptionCall::Finish() {
  is_ended_ = true;
  ticket_ = nullptr;
  model_.version->events->OnAudio(reader_->seconds());
  exchange_->SetTold();
  if (asked_.stream) {
    JsonWriter json;
    json.Object([&] {
      json.Member("type", "transcript.text.done");
      WriteText(json);
    });
    return Tell(json.Take(), /*last=*/true);
  }
  exchange_->Answer([self = shared_from_this()] { return self->Reply(); });
}

void TranscriptionCall::WriteText(JsonWriter& json) const {
  json.Member("text", transcript_->Text());
  if (asked_.form == TranscriptForm::kVerboseJson && !asked_.stream) WriteSegments(json);
  json.Object("usage", [&] {
    json.Member("type", "duration");
    json.Member("seconds", static_cast<int64_t>(std::ceil(reader_->seconds())));
  });
}

void TranscriptionCall::WriteSegments(JsonWriter& json) const {
  json.Array("segments", [&] {
    for (size_t i = 0; i < transcript_->segments().size(); ++i) {
      const Segment& segment = transcript_->segments()[i];
      json.Object([&] {
        json.Member("id", i);
        json.Member("seek", segment.seek);
        WriteSeconds("start", segment.start, json);
        WriteSeconds("end", segment.end, json);
        json.Member("text", segment.text);
        json.List("tokens", segment.ids);
        json.Member("temperature", segment.scores.temperature);
        WriteAs("avg_logprob", "%.6f", segment.scores.logprob, json);
        WriteAs("compression_ratio", "%.6f", segment.scores.compression_ratio, json);
        WriteAs("no_speech_prob", "%.6g", segment.scores.no_speech, json);
      });
    }
  });
}

std::string TranscriptionCall::Json() const {
  JsonWriter json;
  json.Object([&] {
    if (asked_.form == TranscriptForm::kVerboseJson) {
      const Language* const language = FindLanguage(language_);
      json.Member("task", asked_.translates ? "translate" : "transcribe");
      json.Member("language", language == nullptr ? absl::string_view(language_) : language->name);
      WriteSeconds("duration", reader_->seconds(), json);
    }
    WriteText(json);
  });
  return json.Take();
}

HttpReply TranscriptionCall::Reply() const {
  switch (asked_.form) {
    case TranscriptForm::kText:
      return {.body = transcript_->Text() + "\n"};
    case TranscriptForm::kSrt:
      return {.content_type = "application/x-subrip", .body = transcript_->Srt()};
    case TranscriptForm::kVtt:
      return {.content_type = "text/vtt; charset=utf-8", .body = transcript_->Vtt()};
    case TranscriptForm::kVerboseJson:
    case TranscriptForm::kJson:
      break;
  }
  return {.content_type = "application/json", .body = Json()};
}

}  // namespace reprise

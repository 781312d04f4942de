#include "server/text_api/transcriptions.h"

#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/http/form.h"
#include "server/hub/languages.h"
#include "server/rest/json_document.h"
#include "server/text_api/transcription_call.h"

namespace reprise {
namespace {

// THE forms of an answer.
struct Form {
  absl::string_view name;
  TranscriptForm form;
};
constexpr Form kForms[] = {{"json", TranscriptForm::kJson},
                           {"text", TranscriptForm::kText},
                           {"verbose_json", TranscriptForm::kVerboseJson},
                           {"srt", TranscriptForm::kSrt},
                           {"vtt", TranscriptForm::kVtt}};

// The fields of a form, by name; those that are lists end with "[]".
class FormFields {
 public:
  explicit FormFields(const std::vector<FormPart>& parts) : parts_(parts) {}

  const FormPart* Find(absl::string_view name) const {
    const auto found = absl::c_find_if(parts_, [&](const FormPart& p) { return p.name == name; });
    return found == parts_.end() ? nullptr : &*found;
  }
  std::string Text(absl::string_view name, absl::string_view fallback) const {
    const FormPart* const part = Find(name);
    return std::string(part == nullptr ? fallback : part->data);
  }
  template <typename Number, typename Parse>
  absl::Status Read(absl::string_view name, const char* kind, Parse parse, Number& number) const {
    const FormPart* const part = Find(name);
    if (part == nullptr || part->data.empty() || parse(part->data, &number)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is \"", ShownText(part->data), "\", it must be ", kind));
  }

 private:
  const std::vector<FormPart>& parts_;
};

absl::StatusOr<TranscriptForm> FormOf(const std::string& name) {
  const auto found = absl::c_find_if(kForms, [&](const Form& form) { return form.name == name; });
  if (found != std::end(kForms)) return found->form;
  return absl::InvalidArgumentError(
      absl::StrCat("\"response_format\" is \"", ShownText(name), "\", it must be ",
                   absl::StrJoin(kForms, ", ", [](std::string* text, const Form& form) {
                     absl::StrAppend(text, form.name);
                   })));
}

// Sets the language that the client names, where the model tells languages apart.
absl::Status ReadLanguage(const FormFields& fields, const SpeechFacts& facts,
                          AskedTranscript& asked) {
  const std::string named = fields.Text("language", "");
  if (facts.languages.empty()) {
    asked.language = "en";
    if (named.empty() || FindLanguage(named) == FindLanguage("en")) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("\"language\" is \"", ShownText(named),
                                                   "\", and the model knows English alone"));
  }
  if (named.empty()) return absl::OkStatus();
  const Language* const language = FindLanguage(named);
  asked.language = language == nullptr ? named : std::string(language->code);
  if (facts.languages.count(asked.language) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"language\" is \"", ShownText(named), "\", which is none of the model's ",
                   facts.languages.size(), " (codes as \"de\", or names as \"german\")"));
}

absl::Status ReadGranularities(const std::vector<FormPart>& parts, const AskedTranscript& asked) {
  for (const FormPart& part : parts) {
    if (part.name == "include[]") {
      return absl::InvalidArgumentError("\"include[]\" is not supported");
    }
    if (part.name != "timestamp_granularities[]") continue;
    if (part.data == "word") {
      return absl::InvalidArgumentError(
          "\"timestamp_granularities[]\" is \"word\": times of words are read from the decoder's "
          "cross attentions, which are no outputs of its files; segment is supported");
    }
    if (part.data != "segment") {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"timestamp_granularities[]\" is \"", ShownText(part.data), "\", segment is supported"));
    }
    if (asked.form != TranscriptForm::kVerboseJson) {
      return absl::InvalidArgumentError(
          "\"timestamp_granularities[]\" needs \"response_format\" verbose_json");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadForTask(const SpeechFacts& facts, bool translates) {
  if (!translates) return absl::OkStatus();
  if (facts.languages.empty()) {
    return absl::InvalidArgumentError("the model knows English alone: it translates nothing");
  }
  if (facts.translate != SpeechFacts::kNone) return absl::OkStatus();
  return absl::InvalidArgumentError("the model has no token for the task of translation");
}

bool ParseThreshold(absl::string_view text, double* threshold) {
  return absl::SimpleAtod(text, threshold) && !std::isnan(*threshold);
}

// Returns the only model that is ready and takes sound, where the client names none.
absl::StatusOr<std::string> ChooseSpeech(const TextApiContext& context, const std::string& named) {
  return ChooseOnly(context, named, {"makes texts of sound", "make texts of sound"},
                    [](const Servable&, const TextModel& text) { return SpeechOf(text).ok(); });
}

absl::Status ReadTranscript(const TextApiContext& context, const HttpExchange& exchange,
                            const std::string& model, AskedTranscript& asked) {
  const HttpRequest& request = exchange.request();
  ASSIGN_OR_RETURN(const std::vector<FormPart> parts,
                   ReadForm(request.Field("content-type"), request.body));
  const FormFields fields(parts);
  ASSIGN_OR_RETURN(asked.model,
                   ChooseSpeech(context, model.empty() ? fields.Text("model", "") : model));
  ASSIGN_OR_RETURN(asked.text, FindTextModel(context, asked.model));
  ASSIGN_OR_RETURN(const SpeechFacts* const facts, SpeechOf(*asked.text));
  RETURN_IF_ERROR(ReadForTask(*facts, asked.translates));
  const FormPart* const file = fields.Find("file");
  if (file == nullptr) return absl::InvalidArgumentError("the form has no part \"file\"");
  asked.file = file->data;
  ASSIGN_OR_RETURN(asked.form, FormOf(fields.Text("response_format", "json")));
  RETURN_IF_ERROR(ReadLanguage(fields, *facts, asked));
  RETURN_IF_ERROR(ReadGranularities(parts, asked));
  asked.prompt = fields.Text("prompt", "");
  RETURN_IF_ERROR(fields.Read("stream", "true or false", absl::SimpleAtob, asked.stream));
  asked.sampling.temperature = 0;
  RETURN_IF_ERROR(
      fields.Read("temperature", "a number", absl::SimpleAtof, asked.sampling.temperature));
  asked.thresholds = facts->thresholds;
  SpeechThresholds& to = asked.thresholds;
  for (const auto& [name, threshold] :
       {std::pair("compression_ratio_threshold", &to.compression_ratio),
        {"logprob_threshold", &to.logprob},
        {"no_speech_threshold", &to.no_speech}}) {
    RETURN_IF_ERROR(fields.Read(name, "a number", ParseThreshold, *threshold));
  }
  uint64_t seed = 0;
  RETURN_IF_ERROR(fields.Read("seed", "a whole number", absl::SimpleAtoi<uint64_t>, seed));
  if (fields.Find("seed") != nullptr) asked.sampling.seed = seed;
  const bool is_plain = asked.form == TranscriptForm::kJson || asked.form == TranscriptForm::kText;
  if (!asked.stream || is_plain) return absl::OkStatus();
  return absl::InvalidArgumentError("\"stream\" needs the \"response_format\" json or text");
}

// Reads the sound that a client of a model hub sends: the body, or "inputs" of JSON.
absl::Status ReadHubSound(const TextApiContext& context, const HttpExchange& exchange,
                          const std::string& model, AskedTranscript& asked) {
  ASSIGN_OR_RETURN(asked.model, ChooseSpeech(context, model));
  ASSIGN_OR_RETURN(asked.text, FindTextModel(context, asked.model));
  ASSIGN_OR_RETURN(const SpeechFacts* const facts, SpeechOf(*asked.text));
  RETURN_IF_ERROR(ReadLanguage(FormFields({}), *facts, asked));
  asked.sampling.temperature = 0;
  asked.thresholds = facts->thresholds;
  asked.file = exchange.request().body;
  if (!absl::StartsWithIgnoreCase(exchange.request().Field("content-type"), "application/json")) {
    return absl::OkStatus();
  }
  JsonDocument document(*context.parsing);
  ASSIGN_OR_RETURN(const simdjson::dom::element json, document.Parse(asked.file));
  std::string_view base64;
  std::string file;
  if (json["inputs"].get(base64) != simdjson::SUCCESS ||
      !absl::Base64Unescape({base64.data(), base64.size()}, &file)) {
    return absl::InvalidArgumentError("\"inputs\" must be a sound file in base64");
  }
  asked.decoded = std::make_shared<const std::string>(std::move(file));
  asked.file = *asked.decoded;
  return absl::OkStatus();
}

using ReadSound = absl::Status (*)(const TextApiContext& context, const HttpExchange& exchange,
                                   const std::string& model, AskedTranscript& asked);

void ServeSound(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                const std::string& model, bool translates, ReadSound read_sound = ReadTranscript) {
  AskedTranscript asked{.translates = translates};
  const absl::Status read = WithinMemory(
      [] { return "the request"; }, [&] { return read_sound(context, *exchange, model, asked); });
  if (!read.ok()) {
    return exchange->Answer([read] { return TextErrorReply(ErrorForm::kOpenAi, read); });
  }
  TranscriptionCall::Start(context, std::move(asked), std::move(exchange));
}

}  // namespace

void ServeTranscriptions(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                         const std::string& model) {
  ServeSound(context, std::move(exchange), model, /*translates=*/false);
}

void ServeTranslations(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                       const std::string& model) {
  ServeSound(context, std::move(exchange), model, /*translates=*/true);
}

void ServeHubSound(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                   const std::string& model) {
  ServeSound(context, std::move(exchange), model, /*translates=*/false, ReadHubSound);
}

}  // namespace reprise

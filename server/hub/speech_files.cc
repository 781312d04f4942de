#include "server/hub/speech_files.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "server/hub/json_file.h"
#include "server/hub/languages.h"

namespace reprise {
namespace {

constexpr char kPreprocessor[] = "preprocessor_config.json";

absl::Status ReadSize(const nlohmann::json& json, const char* name, int64_t least, int64_t most,
                      int64_t& size) {
  size = IntMember(json, name, size);
  if (size >= least && size <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(kPreprocessor, ": ", name, " is ", size,
                                                 ", it must be from ", least, " to ", most));
}

absl::StatusOr<SpectrumShape> ReadSpectrum(const nlohmann::json& json) {
  const std::string type = TextMember(json, "feature_extractor_type", "");
  if (type != "WhisperFeatureExtractor") {
    return absl::InvalidArgumentError(absl::StrCat(kPreprocessor, ": feature_extractor_type is \"",
                                                   type, "\", WhisperFeatureExtractor is served"));
  }
  if (BoolMember(json, "do_normalize", false)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kPreprocessor, ": do_normalize is not supported"));
  }
  SpectrumShape shape;
  RETURN_IF_ERROR(ReadSize(json, "sampling_rate", 1000, 192000, shape.rate));
  RETURN_IF_ERROR(ReadSize(json, "feature_size", 1, 1024, shape.mels));
  RETURN_IF_ERROR(ReadSize(json, "n_fft", 2, 16384, shape.size));
  RETURN_IF_ERROR(ReadSize(json, "hop_length", 1, shape.size, shape.step));
  int64_t seconds = 30;
  constexpr int64_t kMostSeconds = 600;
  RETURN_IF_ERROR(ReadSize(json, "chunk_length", 1, kMostSeconds, seconds));
  shape.samples = seconds * shape.rate;
  RETURN_IF_ERROR(
      ReadSize(json, "n_samples", shape.size, kMostSeconds * shape.rate, shape.samples));
  return shape;
}

// Sets an id that was not set before.
void TakeId(const nlohmann::json& json, const char* name, int64_t& id) {
  if (id == SpeechFacts::kNone) id = IntMember(json, name, SpeechFacts::kNone);
}

// "<|en|>": "en"; empty: `token` is none of a language.
absl::string_view CodeOf(absl::string_view token) {
  return absl::ConsumePrefix(&token, "<|") && absl::ConsumeSuffix(&token, "|>")
             ? token
             : absl::string_view();
}

void ReadIds(const nlohmann::json& json, SpeechFacts& facts) {
  TakeId(json, "decoder_start_token_id", facts.start);
  TakeId(json, "eos_token_id", facts.end);
  TakeId(json, "no_timestamps_token_id", facts.no_timestamps);
  TakeId(json, "prev_sot_token_id", facts.previous);
  TakeId(json, "max_initial_timestamp_index", facts.max_initial_time);
  facts.is_english = facts.is_english || !BoolMember(json, "is_multilingual", true);
  if (!json.is_object()) return;
  if (const auto tasks = json.find("task_to_id"); tasks != json.end()) {
    TakeId(*tasks, "transcribe", facts.transcribe);
    TakeId(*tasks, "translate", facts.translate);
  }
  const auto languages = json.find("lang_to_id");
  if (!facts.languages.empty() || languages == json.end() || !languages->is_object()) return;
  for (const auto& [token, id] : languages->items()) {
    const absl::string_view code = CodeOf(token);
    if (!code.empty() && id.is_number_integer()) {
      facts.languages.emplace(code, id.get<int64_t>());
    }
  }
}

// Reads a threshold. Null, as transformers has it, stands for Whisper's own.
absl::Status TakeThreshold(const nlohmann::json& json, const char* file, const char* name,
                           double& threshold) {
  const auto member = json.is_object() ? json.find(name) : json.end();
  if (member == json.end() || member->is_null()) return absl::OkStatus();
  if (!member->is_number()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", name, " is ", member->dump(), ", it must be a number"));
  }
  threshold = member->get<double>();
  return absl::OkStatus();
}

void TakeToken(const Tokenizer& tokenizer, absl::string_view token, int64_t& id) {
  if (id != SpeechFacts::kNone) return;
  if (const std::optional<uint32_t> found = tokenizer.Id(token)) id = *found;
}

}  // namespace

absl::StatusOr<std::optional<SpeechFacts>> ReadSpeechFiles(const std::filesystem::path& folder) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(folder / kPreprocessor));
  if (json.is_null()) return std::nullopt;
  // Folders of images and of other sounds have such a file as well.
  if (!absl::StartsWith(TextMember(json, "feature_extractor_type", ""), "Whisper")) {
    return std::nullopt;
  }
  SpeechFacts facts;
  ASSIGN_OR_RETURN(facts.spectrum, ReadSpectrum(json));
  for (const char* name : {"generation_config.json", "config.json"}) {
    ASSIGN_OR_RETURN(const nlohmann::json ids, ReadJsonIfThere(folder / name));
    ReadIds(ids, facts);
  }
  constexpr char kGeneration[] = "generation_config.json";
  ASSIGN_OR_RETURN(const nlohmann::json generation, ReadJsonIfThere(folder / kGeneration));
  SpeechThresholds& to = facts.thresholds;
  for (const auto& [name, threshold] :
       {std::pair("compression_ratio_threshold", &to.compression_ratio),
        {"logprob_threshold", &to.logprob},
        {"no_speech_threshold", &to.no_speech}}) {
    RETURN_IF_ERROR(TakeThreshold(generation, kGeneration, name, *threshold));
  }
  return facts;
}

void CompleteSpeechFacts(const Tokenizer& tokenizer, SpeechFacts& facts) {
  TakeToken(tokenizer, "<|startoftranscript|>", facts.start);
  TakeToken(tokenizer, "<|endoftext|>", facts.end);
  TakeToken(tokenizer, "<|transcribe|>", facts.transcribe);
  TakeToken(tokenizer, "<|translate|>", facts.translate);
  TakeToken(tokenizer, "<|startofprev|>", facts.previous);
  TakeToken(tokenizer, "<|notimestamps|>", facts.no_timestamps);
  for (const char* token : {"<|nospeech|>", "<|nocaptions|>"}) {
    TakeToken(tokenizer, token, facts.no_speech);
  }
  // English models have the tokens of languages as well, and were not taught them. The id tells
  // them from others where no file does.
  constexpr uint32_t kEnglishEnd = 50256;
  facts.is_english = facts.is_english || tokenizer.Id("<|endoftext|>") == kEnglishEnd;
  if (facts.is_english) facts.languages.clear();
  if (!facts.languages.empty() || facts.is_english) return;
  for (const Language& language : Languages()) {
    if (const auto id = tokenizer.Id(absl::StrCat("<|", language.code, "|>"))) {
      facts.languages.emplace(language.code, *id);
    }
  }
}

}  // namespace reprise

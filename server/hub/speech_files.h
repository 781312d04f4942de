// SpeechFacts: the settings of sound in a Whisper folder: how it becomes a spectrum
// (preprocessor_config.json), and the ids that tell the decoder what to write
// (generation_config.json, config.json, the tokenizer).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/text/tokenizer.h"

namespace reprise {

// How samples become features [mels, frames], as WhisperFeatureExtractor of transformers does it.
struct SpectrumShape {
  int64_t rate = 16000;      // samples a second
  int64_t mels = 80;         // feature_size
  int64_t size = 400;        // n_fft: the samples of a Fourier transform
  int64_t step = 160;        // hop_length: the samples from one to the next
  int64_t samples = 480000;  // n_samples: the samples of a window, which is filled up with silence

  int64_t frames() const { return samples / step; }
};

// When the answer of a window is not taken, as in OpenAI's Whisper.
struct SpeechThresholds {
  double compression_ratio = 2.4;  // above: it repeats itself
  double logprob = -1;             // below: it is a guess
  double no_speech = 0.6;          // above, and a guess: nobody speaks
};

struct SpeechFacts {
  static constexpr int64_t kNone = -1;

  SpectrumShape spectrum;
  // Ids of the decoder; kNone: it has none of this kind.
  int64_t start = kNone;  // decoder_start_token_id, <|startoftranscript|>
  int64_t end = kNone;    // <|endoftext|>: the ids below it are text
  int64_t transcribe = kNone;
  int64_t translate = kNone;
  int64_t previous = kNone;                  // <|startofprev|>, in front of a prompt
  int64_t no_timestamps = kNone;             // the ids after it are times
  int64_t no_speech = kNone;                 // <|nospeech|>: nobody speaks
  int64_t max_initial_time = kNone;          // max_initial_timestamp_index
  bool is_english = false;                   // is_multilingual is false
  std::map<std::string, int64_t> languages;  // keyed by code; empty: English alone
  SpeechThresholds thresholds;

  int64_t first_time() const { return no_timestamps + 1; }
  bool has_times() const { return no_timestamps != kNone; }
  // Returns the seconds from a time to the next: the encoder halves the number of frames.
  double time_step() const {
    return 2.0 * static_cast<double>(spectrum.step) / static_cast<double>(spectrum.rate);
  }
  double window_seconds() const {
    return static_cast<double>(spectrum.samples) / static_cast<double>(spectrum.rate);
  }
};

// Reads the files of `folder`; nullopt where it has no preprocessor_config.json. Errors:
// INVALID_ARGUMENT naming the file, the member and its value.
absl::StatusOr<std::optional<SpeechFacts>> ReadSpeechFiles(const std::filesystem::path& folder);

// Sets the ids that no file gave to the tokens that Whisper's vocabularies have for them.
void CompleteSpeechFacts(const Tokenizer& tokenizer, SpeechFacts& facts);

}  // namespace reprise

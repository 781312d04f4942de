// SpokenWindow: the tokens that the decoder made of a window of sound, how likely they are, and
// whether they are taken as they are: by the thresholds of OpenAI's Whisper.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/hub/speech_files.h"

namespace reprise {

struct SpokenScores {
  float temperature = 0;         // the draws'
  double logprob = 0;            // the mean of the tokens', the one that ended them among them
  double compression_ratio = 0;  // high where the text repeats itself
  double no_speech = 0;  // the probability that nobody speaks; 0: the model has no such token
};

struct SpokenWindow {
  int64_t seek = 0;          // its first sample in the sound
  int64_t samples = 0;       // its sound, without the silence after it
  std::vector<int64_t> ids;  // the id that ended it is left out
  SpokenScores scores;
};

// Returns how many bytes of `text` a byte of zlib's holds.
absl::StatusOr<double> CompressionRatio(absl::string_view text);

// Returns whether nobody speaks in the window: its text is a guess.
bool IsSilent(const SpokenScores& scores, const SpeechThresholds& thresholds);
// Returns whether the window is decoded again, at a higher temperature.
bool IsDoubtful(const SpokenScores& scores, const SpeechThresholds& thresholds);

}  // namespace reprise

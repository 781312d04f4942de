// Transcript: the texts of the windows of a sound and their times, and the forms that answers have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/hub/speech_files.h"
#include "server/text/tokenizer.h"

namespace reprise {

// The tokens that the decoder made of a window.
struct SpokenWindow {
  int64_t seek = 0;          // its first sample in the sound
  int64_t samples = 0;       // its sound, without the silence after it
  std::vector<int64_t> ids;  // the id that ended it is left out
  double logprob = 0;        // the mean of its tokens'
};

// A piece of the transcript.
struct Segment {
  double start = 0, end = 0;  // seconds
  int64_t seek = 0;           // the start of its window, in frames
  std::string text;
  std::vector<int64_t> ids;
  double logprob = 0;
};

class Transcript {
 public:
  // Both outlive it. `with_times`: the tokens have times among them.
  Transcript(const SpeechFacts& facts, const Tokenizer& tokenizer, bool with_times)
      : facts_(facts), tokenizer_(tokenizer), with_times_(with_times) {}

  // Adds the segments of a window. Returns how many samples after its first the next one begins:
  // where the last whole piece ended, as OpenAI's Whisper does it, but at least a 150th of a
  // window.
  absl::StatusOr<int64_t> Add(const SpokenWindow& window);

  // Returns whether `id` stands for text; others are ids of times and tasks.
  bool IsText(int64_t id) const { return id < facts_.end; }

  const std::vector<Segment>& segments() const { return segments_; }
  // Returns the whole text, without blanks at both ends.
  std::string Text() const;
  // Return the segments as subtitles; times are "hh:mm:ss,mmm" or "hh:mm:ss.mmm".
  std::string Srt() const;
  std::string Vtt() const;

 private:
  absl::Status AddSegment(const SpokenWindow& window, absl::Span<const int64_t> ids, double start,
                          double end);

  const SpeechFacts& facts_;
  const Tokenizer& tokenizer_;
  const bool with_times_;
  std::vector<Segment> segments_;
};

}  // namespace reprise

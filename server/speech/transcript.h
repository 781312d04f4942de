// Transcript: the texts of the windows of a sound and their times, and the forms that answers have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/hub/speech_files.h"
#include "server/speech/spoken_window.h"
#include "server/text/tokenizer.h"

namespace reprise {

// A piece of the transcript.
struct Segment {
  double start = 0, end = 0;  // seconds
  int64_t seek = 0;           // the start of its window, in frames
  std::string text;
  std::vector<int64_t> ids;
  SpokenScores scores;  // those of its window
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

  // Returns the text of the tokens, without blanks at both ends.
  absl::StatusOr<std::string> TextOf(absl::Span<const int64_t> ids) const;

  const std::vector<Segment>& segments() const { return segments_; }
  // Returns the whole text, without blanks at both ends.
  std::string Text() const;
  // Return the segments as subtitles; times are "hh:mm:ss,mmm" or "hh:mm:ss.mmm".
  std::string Srt() const;
  std::string Vtt() const;

 private:
  absl::StatusOr<std::string> Decode(absl::Span<const int64_t> ids) const;
  absl::Status AddSegment(const SpokenWindow& window, absl::Span<const int64_t> ids, double start,
                          double end);

  const SpeechFacts& facts_;
  const Tokenizer& tokenizer_;
  const bool with_times_;
  std::vector<Segment> segments_;
};

}  // namespace reprise

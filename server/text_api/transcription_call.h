// TranscriptionCall: one sound, from its bytes to the answer in the form that was asked for.
//
// The sound is decoded a window at a time; each becomes features on a thread of texts, then tokens
// on the model's own thread, whose times say where the next window begins. So a request holds a
// window of samples however long its sound is. Where no language was named, one more token is made
// of the first window: the likeliest language.
//
// Ownership: the call keeps itself alive until it is answered; the exchange holds the bytes.
// Threads:   a window is worked on by one thread at a time, which hands over to the next.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/json/json_writer.h"
#include "server/generate/token_calls.h"
#include "server/speech/audio_reader.h"
#include "server/speech/log_mel.h"
#include "server/speech/transcript.h"
#include "server/text/text_stream.h"
#include "server/text_api/text_face.h"

namespace reprise {

enum class TranscriptForm { kJson, kText, kVerboseJson, kSrt, kVtt };

// A request that was read.
struct AskedTranscript {
  std::string model;
  std::shared_ptr<const TextModel> text;
  absl::string_view file;  // a view of the body of the exchange, or of `decoded`
  std::shared_ptr<const std::string> decoded;
  bool translates = false;
  bool stream = false;
  TranscriptForm form = TranscriptForm::kJson;
  std::string language;  // a code; empty: the model says
  std::string prompt;    // the text before the sound
  SamplingOptions sampling;
  SpeechThresholds thresholds;
};

// Returns the facts about sound in the model's folder. Errors: FAILED_PRECONDITION where
// there are none, or they are damaged.
absl::StatusOr<const SpeechFacts*> SpeechOf(const TextModel& model);

class TranscriptionCall : public std::enable_shared_from_this<TranscriptionCall> {
 public:
  // Answers `exchange` once, whatever happens.
  static void Start(const TextApiContext& context, AskedTranscript asked,
                    std::shared_ptr<HttpExchange> exchange);

  TranscriptionCall(const TextApiContext& context, AskedTranscript asked,
                    std::shared_ptr<HttpExchange> exchange);

 private:
  // Runs a part of the work on a thread of texts; its error ends the call.
  void Run(absl::Status (TranscriptionCall::*part)());
  absl::Status Open();
  // Fills the window and asks the model for its tokens; ends the call where no sound is left.
  absl::Status BeginWindow();
  absl::Status AskForLanguage();
  absl::Status AskForTokens();
  // Takes the answer of the window, or asks for another.
  absl::Status EndWindow();
  absl::Status Ask(TokenRequest request, TokenCalls::OnTokens on_tokens);
  void OnLanguage(const GenerationEvent& event);
  void OnTokens(const GenerationEvent& event);
  absl::StatusOr<std::vector<int64_t>> Beginning() const;
  absl::Status GoOn() const;
  // With times, the end of a window may be dropped and heard again in the next one: only whole
  // segments are told then.
  bool IsToldByWords() const { return asked_.stream && !has_times_; }

  void Finish();
  // Ends the call with an error: of the model's steps, which have reported it; of anything else.
  void Fail(const absl::Status& status);
  void Refuse(const absl::Status& status);
  void Leave();
  void Tell(const std::string& json, bool last);
  void TellText(absl::StatusOr<std::string> part);
  HttpReply Reply() const;
  std::string Json() const;
  // Writes the members that every form in JSON ends with.
  void WriteText(JsonWriter& json) const;
  void WriteSegments(JsonWriter& json) const;

  // Constant after construction.
  const TextApiContext context_;
  const AskedTranscript asked_;
  const SpeechFacts& facts_;
  const std::shared_ptr<HttpExchange> exchange_;
  KeyUse::Ticket ticket_;
  // Used by the thread that works on the window.
  Repository::Found model_;
  std::unique_ptr<AudioReader> reader_;
  std::optional<LogMel> spectrum_;
  std::optional<Transcript> transcript_;
  std::string language_;
  bool has_times_ = false;
  // Those that are tried until an answer is taken; one where none is tried again.
  std::vector<float> temperatures_;
  std::vector<float> samples_;  // the window, and one more where the sound goes on
  std::string features_;        // as the model takes them
  SpokenWindow window_;
  size_t attempt_ = 0;                // which of the temperatures
  std::shared_ptr<double> logprobs_;  // the sum of the tokens'
  std::optional<TextStream> texts_;   // the text of the window, told as it comes
  bool is_begun_ = false, is_ended_ = false;
  // Self-synchronised.
  std::atomic<bool> is_left_{false};
  // Guarded.
  Mutex mutex_;
  std::shared_ptr<TokenCall> call_ GUARDED_BY(mutex_);
  int64_t asked_count_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise

// AudioReader: the sound of a file as one channel of samples at the rate that a model needs, a part
// at a time, so that its memory does not grow with the length of the sound.
//
// WAV, FLAC, MP3 and OGG (Vorbis, Opus) are read, by libsndfile; sound of another rate is
// resampled, by libsoxr. Channels are averaged. Whatever a header claims, no more is made than the
// file holds.
//
//   ASSIGN_OR_RETURN(auto reader, AudioReader::Open(bytes, {.rate = 16000, .most_seconds = 60}));
//   RETURN_IF_ERROR(reader->Read(480000, samples));   // fewer: it has ended
//
// Ownership: the bytes outlive the reader. Threads: one at a time.
// Errors: INVALID_ARGUMENT for bytes that are no sound, or too long, with both values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

class AudioReader {
 public:
  struct Options {
    int64_t rate = 16000;         // samples a second that are made
    int64_t most_seconds = 7200;  // the longest sound that is read
  };

  static absl::StatusOr<std::unique_ptr<AudioReader>> Open(absl::string_view bytes,
                                                           const Options& options);
  ~AudioReader();
  AudioReader(const AudioReader&) = delete;
  AudioReader& operator=(const AudioReader&) = delete;

  // Appends `samples` samples, or fewer where the sound ends.
  absl::Status Read(int64_t samples, std::vector<float>& to);
  // Returns the seconds that were read.
  double seconds() const;

 private:
  struct File;
  AudioReader(std::unique_ptr<File> file, const Options& options);
  // Decodes the next block. False: there is none.
  absl::StatusOr<bool> NextBlock();
  absl::Status Resample(bool is_end);

  const Options options_;
  const std::unique_ptr<File> file_;
  std::vector<float> block_;  // decoded, one channel
  std::vector<float> ready_;  // made and not taken
  size_t taken_ = 0;          // samples taken out of `ready_`
  int64_t decoded_ = 0;       // samples of a channel, at the file's rate
  bool has_ended_ = false;
};

}  // namespace reprise

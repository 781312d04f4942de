#include "server/speech/audio_reader.h"

#include <sndfile.h>
#include <soxr.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr int64_t kBlockSamples = 1 << 14;  // summed over all channels
constexpr int kLeastRate = 1000, kMostRate = 768000;

// Returns the name of the format that `bytes` begin as; empty: none that is read. Other formats of
// libsndfile are rare and less tried.
absl::string_view FormatOf(absl::string_view bytes) {
  constexpr size_t kHead = 12;
  if (bytes.size() < kHead) return "";
  const absl::string_view mark = bytes.substr(0, 4);
  if ((mark == "RIFF" || mark == "RF64") && bytes.substr(8, 4) == "WAVE") return "WAV";
  if (mark == "fLaC") return "FLAC";
  if (mark == "OggS") return "OGG";
  constexpr unsigned char kSync = 0xe0;
  const auto second = static_cast<unsigned char>(bytes[1]);
  const bool is_frame = bytes[0] == '\xff' && (second & kSync) == kSync;
  return is_frame || absl::StartsWith(bytes, "ID3") ? "MP3" : "";
}

// Returns the name of a usual format that is not read.
absl::string_view OtherFormatOf(absl::string_view bytes) {
  if (bytes.size() > 8 && bytes.substr(4, 4) == "ftyp") return " (it is MP4 or M4A)";
  if (absl::StartsWith(bytes, "\x1a\x45\xdf\xa3")) return " (it is WebM or Matroska)";
  if (absl::StartsWith(bytes, "FORM")) return " (it is AIFF)";
  return "";
}

}  // namespace

// The bytes as libsndfile reads them.
struct AudioReader::File {
  struct SoundCloser {
    void operator()(SNDFILE* sound) const { sf_close(sound); }
  };
  struct ResamplerDeleter {
    void operator()(soxr* resampler) const { soxr_delete(resampler); }
  };

  absl::string_view bytes;
  absl::string_view format;
  int64_t place = 0;
  SF_INFO info = {};
  std::unique_ptr<SNDFILE, SoundCloser> sound;
  std::unique_ptr<soxr, ResamplerDeleter> resampler;  // null: the rate is right already
  std::vector<float> frames;                          // interleaved channels

  static File& Of(void* data) { return *static_cast<File*>(data); }
  static sf_count_t Size(void* data) { return std::ssize(Of(data).bytes); }
  static sf_count_t Tell(void* data) { return Of(data).place; }
  static sf_count_t Write(const void*, sf_count_t, void*) { return 0; }
  static sf_count_t Seek(sf_count_t offset, int whence, void* data) {
    File& file = Of(data);
    const int64_t size = std::ssize(file.bytes);
    const int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.place : size;
    int64_t to = 0;
    if (__builtin_add_overflow(from, offset, &to) || to < 0 || to > size) return -1;
    return file.place = to;
  }
  static sf_count_t Take(void* to, sf_count_t count, void* data) {
    File& file = Of(data);
    count = std::clamp<sf_count_t>(count, 0, std::ssize(file.bytes) - file.place);
    std::memcpy(to, file.bytes.data() + file.place, static_cast<size_t>(count));
    file.place += count;
    return count;
  }
};

AudioReader::AudioReader(std::unique_ptr<File> file, const Options& options)
    : options_(options), file_(std::move(file)) {}

AudioReader::~AudioReader() = default;

absl::StatusOr<std::unique_ptr<AudioReader>> AudioReader::Open(absl::string_view bytes,
                                                               const Options& options) {
  auto file = std::make_unique<File>();
  file->bytes = bytes;
  file->format = FormatOf(bytes);
  if (file->format.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the file of ", bytes.size(),
                                                   " bytes is neither WAV, FLAC, MP3 nor OGG",
                                                   OtherFormatOf(bytes)));
  }
  SF_VIRTUAL_IO io = {.get_filelen = File::Size,
                      .seek = File::Seek,
                      .read = File::Take,
                      .write = File::Write,
                      .tell = File::Tell};
  file->sound.reset(sf_open_virtual(&io, SFM_READ, &file->info, file.get()));
  const SF_INFO& info = file->info;
  if (file->sound == nullptr || info.channels < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the file begins as ", file->format, ", and its ", bytes.size(), " bytes are no sound"));
  }
  if (info.samplerate < kLeastRate || info.samplerate > kMostRate) {
    return absl::InvalidArgumentError(absl::StrCat("the sound has ", info.samplerate,
                                                   " samples a second, it must have ", kLeastRate,
                                                   " to ", kMostRate));
  }
  // A stream does not know its length and says the largest.
  const bool is_known = info.frames < SF_COUNT_MAX / 2;
  if (is_known && info.frames / info.samplerate > options.most_seconds) {
    return absl::InvalidArgumentError(absl::StrCat("the sound has ", info.frames / info.samplerate,
                                                   " seconds, the limit is ", options.most_seconds,
                                                   " (reprise.max_audio_seconds)"));
  }
  if (info.samplerate != options.rate) {
    const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    soxr_error_t error = nullptr;
    file->resampler.reset(soxr_create(info.samplerate, static_cast<double>(options.rate), 1, &error,
                                      nullptr, &quality, nullptr));
    if (file->resampler == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("resampling from ", info.samplerate, " samples a second: ", error));
    }
  }
  return std::unique_ptr<AudioReader>(new AudioReader(std::move(file), options));
}

double AudioReader::seconds() const {
  return static_cast<double>(decoded_) / static_cast<double>(file_->info.samplerate);
}

absl::StatusOr<bool> AudioReader::NextBlock() {
  const int64_t channels = file_->info.channels;
  const int64_t most = std::max<int64_t>(1, kBlockSamples / channels);
  file_->frames.resize(static_cast<size_t>(most * channels));
  const int64_t count = sf_readf_float(file_->sound.get(), file_->frames.data(), most);
  if (count <= 0) {
    if (sf_error(file_->sound.get()) == SF_ERR_NO_ERROR) return false;
    return absl::InvalidArgumentError(absl::StrCat("the ", file_->format,
                                                   " cannot be decoded after second ",
                                                   decoded_ / file_->info.samplerate));
  }
  block_.resize(static_cast<size_t>(count));
  const float* from = file_->frames.data();
  for (float& sample : block_) {
    double sum = 0;
    for (int64_t channel = 0; channel < channels; ++channel) sum += *from++;
    sample = static_cast<float>(sum / static_cast<double>(channels));
    if (!std::isfinite(sample)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the sound has a sample that is not a number in second ",
                       (decoded_ + (&sample - block_.data())) / file_->info.samplerate));
    }
  }
  decoded_ += count;
  if (decoded_ / file_->info.samplerate > options_.most_seconds) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the sound has more than ", options_.most_seconds, " seconds (reprise.max_audio_seconds)"));
  }
  return true;
}

absl::Status AudioReader::Resample(bool is_end) {
  if (file_->resampler == nullptr) {
    if (!is_end) ready_ = block_;
    return absl::OkStatus();
  }
  constexpr size_t kRoom = 1 << 14;
  size_t used = 0;
  while (true) {
    const size_t before = ready_.size();
    ready_.resize(before + kRoom);
    size_t done_in = 0, done_out = 0;
    const soxr_error_t error = soxr_process(
        file_->resampler.get(), is_end ? nullptr : block_.data() + used,
        is_end ? 0 : block_.size() - used, &done_in, ready_.data() + before, kRoom, &done_out);
    ready_.resize(before + done_out);
    if (error != nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("resampling: ", error));
    }
    used += done_in;
    if (done_out < kRoom && (is_end || used == block_.size())) return absl::OkStatus();
  }
}

absl::Status AudioReader::Read(int64_t samples, std::vector<float>& to) {
  while (samples > 0) {
    const auto left = static_cast<int64_t>(ready_.size() - taken_);
    if (left > 0) {
      const int64_t now = std::min(left, samples);
      const auto from = ready_.begin() + static_cast<ptrdiff_t>(taken_);
      to.insert(to.end(), from, from + now);
      taken_ += static_cast<size_t>(now);
      samples -= now;
      continue;
    }
    if (has_ended_) break;
    ready_.clear();
    taken_ = 0;
    ASSIGN_OR_RETURN(const bool goes_on, NextBlock());
    has_ended_ = !goes_on;
    RETURN_IF_ERROR(Resample(has_ended_));
    if (has_ended_ && decoded_ == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the ", file_->format, " of ",
                                                     file_->bytes.size(), " bytes has no samples"));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise

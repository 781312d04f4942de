#include "server/speech/spoken_window.h"

#include <zlib.h>

#include "absl/strings/str_cat.h"

namespace reprise {

absl::StatusOr<double> CompressionRatio(absl::string_view text) {
  uLongf size = compressBound(text.size());
  std::vector<Bytef> packed(size);
  const int code = compress(packed.data(), &size, reinterpret_cast<const Bytef*>(text.data()),
                            static_cast<uLong>(text.size()));
  if (code != Z_OK) return absl::InternalError(absl::StrCat("zlib says ", code, " of a text"));
  return static_cast<double>(text.size()) / static_cast<double>(size);
}

bool IsSilent(const SpokenScores& scores, const SpeechThresholds& thresholds) {
  return scores.no_speech > thresholds.no_speech && scores.logprob <= thresholds.logprob;
}

bool IsDoubtful(const SpokenScores& scores, const SpeechThresholds& thresholds) {
  const bool is_unlikely = scores.logprob < thresholds.logprob;
  if (scores.no_speech > thresholds.no_speech && is_unlikely) return false;
  return is_unlikely || scores.compression_ratio > thresholds.compression_ratio;
}

}  // namespace reprise

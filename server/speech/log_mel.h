// LogMel: the features of a window of sound, the numbers of WhisperFeatureExtractor of
// transformers: the powers of frames by a Hann window, summed by triangles on Slaney's mel scale,
// as logarithms that end 8 below the largest.
//
// Threads: one caller.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/ops/products/fourier_sums.h"
#include "server/hub/speech_files.h"

namespace reprise {

class LogMel {
 public:
  explicit LogMel(const SpectrumShape& shape);

  // Returns [mels, frames] of `samples`, at most a window's; silence follows them. Errors: those of
  // `go_on`, which is called from time to time.
  absl::StatusOr<std::vector<float>> Of(absl::Span<const float> samples,
                                        const std::function<absl::Status()>& go_on);

 private:
  using Complex = ops::FourierSums::Complex;
  struct Triangle {
    int64_t first = 0;  // the first bin
    std::vector<double> weights;
  };

  // Adds the window's sample `place` times its weight to the frame's `part`.
  void Load(absl::Span<const float> samples, int64_t frame, std::vector<double>& part) const;
  // Writes log10 of the mels of the frame whose powers are `powers`.
  void Sum(const std::vector<double>& powers, int64_t frame, std::vector<double>& logs) const;

  const SpectrumShape shape_;
  ops::FourierSums sums_;
  std::vector<double> window_;
  std::vector<Triangle> triangles_;
};

}  // namespace reprise

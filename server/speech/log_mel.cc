#include "server/speech/log_mel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/base/go_on.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr double kHighestHertz = 8000;
constexpr double kLeastPower = 1e-10;

// Slaney's scale: linear below 1000 Hz, logarithmic above.
constexpr double kLinearMels = 15, kLinearHertz = 1000, kHertzAMel = 200.0 / 3;
double LogStep() { return std::log(6.4) / 27; }
double MelOf(double hertz) {
  return hertz < kLinearHertz ? hertz / kHertzAMel
                              : kLinearMels + std::log(hertz / kLinearHertz) / LogStep();
}
double HertzOf(double mel) {
  return mel < kLinearMels ? mel * kHertzAMel
                           : kLinearHertz * std::exp(LogStep() * (mel - kLinearMels));
}

}  // namespace

LogMel::LogMel(const SpectrumShape& shape) : shape_(shape), sums_(shape.size) {
  for (int64_t i = 0; i < shape.size; ++i) {
    const double turn = static_cast<double>(i) / static_cast<double>(shape.size);
    window_.push_back(0.5 - 0.5 * std::cos(2 * std::numbers::pi * turn));
  }
  const int64_t bins = shape.size / 2 + 1;
  const double top = static_cast<double>(shape.rate) / 2;
  std::vector<double> edges;
  for (int64_t i = 0; i < shape.mels + 2; ++i) {
    edges.push_back(HertzOf(MelOf(kHighestHertz) * static_cast<double>(i) /
                            static_cast<double>(shape.mels + 1)));
  }
  for (size_t mel = 0; mel + 2 < edges.size(); ++mel) {
    const double low = edges[mel], middle = edges[mel + 1], high = edges[mel + 2];
    Triangle triangle;
    for (int64_t bin = 0; bin < bins; ++bin) {
      const double hertz = top * static_cast<double>(bin) / static_cast<double>(bins - 1);
      const double height =
          std::min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      if (height <= 0) continue;
      if (triangle.weights.empty()) triangle.first = bin;
      triangle.weights.push_back(height * 2 / (high - low));
    }
    triangles_.push_back(std::move(triangle));
  }
}

void LogMel::Load(absl::Span<const float> samples, int64_t frame, std::vector<double>& part) const {
  const int64_t start = frame * shape_.step - shape_.size / 2;
  for (int64_t i = 0; i < shape_.size; ++i) {
    // Before the beginning and after the end of the window the sound is mirrored.
    int64_t place = std::abs(start + i);
    if (place >= shape_.samples) place = 2 * (shape_.samples - 1) - place;
    const double sample = place < std::ssize(samples) ? samples[static_cast<size_t>(place)] : 0.0;
    part[static_cast<size_t>(i)] = window_[static_cast<size_t>(i)] * sample;
  }
}

void LogMel::Sum(const std::vector<double>& powers, int64_t frame,
                 std::vector<double>& logs) const {
  for (size_t mel = 0; mel < triangles_.size(); ++mel) {
    const Triangle& triangle = triangles_[mel];
    double sum = 0;
    for (size_t i = 0; i < triangle.weights.size(); ++i) {
      sum += triangle.weights[i] * powers[static_cast<size_t>(triangle.first) + i];
    }
    const size_t at = mel * static_cast<size_t>(shape_.frames()) + static_cast<size_t>(frame);
    logs[at] = std::log10(std::max(sum, kLeastPower));
  }
}

absl::StatusOr<std::vector<float>> LogMel::Of(absl::Span<const float> samples,
                                              const std::function<absl::Status()>& go_on) {
  const int64_t frames = shape_.frames();
  std::vector<double> logs(static_cast<size_t>(shape_.mels * frames), std::log10(kLeastPower));
  const auto size = static_cast<size_t>(shape_.size);
  std::vector<double> even(size), odd(size), powers(size / 2 + 1), odd_powers(size / 2 + 1);
  std::vector<Complex> x(size);
  // The frames after the last one that reaches a sample are silence, except for those at the end
  // of the window, which the sound before them is mirrored into.
  const int64_t filled =
      std::ssize(samples) + shape_.size >= shape_.samples
          ? frames
          : std::min(frames, (std::ssize(samples) + shape_.size / 2) / shape_.step + 1);
  constexpr int64_t kFramesBetween = 64;
  for (int64_t frame = 0; frame < filled; frame += 2) {
    if (frame % kFramesBetween == 0) RETURN_IF_ERROR(GoesOn(go_on));
    // Two frames are one transform: the spectra of real numbers are even and odd parts of it.
    Load(samples, frame, even);
    Load(samples, frame + 1, odd);
    for (size_t i = 0; i < size; ++i) x[i] = {even[i], odd[i]};
    sums_.Run(x);
    for (size_t bin = 0; bin < powers.size(); ++bin) {
      const Complex one = x[bin], mirror = std::conj(x[(size - bin) % size]);
      powers[bin] = std::norm(one + mirror) / 4;
      odd_powers[bin] = std::norm(one - mirror) / 4;
    }
    Sum(powers, frame, logs);
    if (frame + 1 < frames) Sum(odd_powers, frame + 1, logs);
  }
  const double least = *std::max_element(logs.begin(), logs.end()) - 8;
  std::vector<float> features(logs.size());
  std::transform(logs.begin(), logs.end(), features.begin(), [least](double log) {
    return static_cast<float>((std::max(log, least) + 4) / 4);
  });
  return features;
}

}  // namespace reprise

#include "runtime/sequences/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/sequences/option_range.h"

namespace reprise {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr int64_t kMostLogprobs = 20;
constexpr int64_t kMostAnswers = 64;

// SplitMix64's finaliser.
uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9;
  x ^= x >> 27;
  x *= 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Better first; of equal ones the lower id.
bool IsBetter(const std::pair<float, int64_t>& a, const std::pair<float, int64_t>& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

// The highest of scores, and whether all are numbers below infinity. Side by side, as a vocabulary
// is long.
struct Highest {
  float score = kNever;
  bool are_numbers = true;
};
Highest HighestOf(absl::Span<const float> scores) {
  constexpr size_t kLanes = 16;
  float highest[kLanes];
  uint32_t others[kLanes] = {};
  std::fill_n(highest, kLanes, kNever);
  size_t i = 0;
  for (; i + kLanes <= scores.size(); i += kLanes) {
    const float* const from = scores.data() + i;
    for (size_t j = 0; j < kLanes; ++j) {
      highest[j] = from[j] > highest[j] ? from[j] : highest[j];
      others[j] |= from[j] < -kNever ? 0u : 1u;
    }
  }
  Highest result;
  const auto add = [&result](float score, bool is_number) {
    result.score = std::max(result.score, score);
    result.are_numbers = result.are_numbers && is_number;
  };
  for (size_t j = 0; j < kLanes; ++j) add(highest[j], others[j] == 0);
  for (; i < scores.size(); ++i) add(scores[i], scores[i] < -kNever);
  return result;
}

}  // namespace

absl::Status SamplingOptions::Check(int64_t vocabulary) const {
  constexpr int64_t kMany = std::numeric_limits<int32_t>::max();
  constexpr float kLarge = 1e6;
  for (const absl::Status& status :
       {InRange<int64_t>("max_tokens", max_tokens, 1, kMany),
        InRange<int64_t>("min_tokens", min_tokens, 0, kMany),
        InRange<float>("temperature", temperature, 0, kLarge), InRange<float>("top_p", top_p, 0, 1),
        InRange<int64_t>("top_k", top_k, -1, kMany), InRange<float>("min_p", min_p, 0, 1),
        InRange<float>("repetition_penalty", repetition_penalty, 1e-6f, kLarge),
        InRange<float>("presence_penalty", presence_penalty, -kLarge, kLarge),
        InRange<float>("frequency_penalty", frequency_penalty, -kLarge, kLarge),
        InRange<int64_t>("logprobs", logprobs, -1, kMostLogprobs),
        InRange<int64_t>("n", n, 1, kMostAnswers)}) {
    if (!status.ok()) return status;
  }
  for (const auto& [id, bias] : logit_bias) {
    const absl::Status fits = InRange<int64_t>("logit_bias", id, 0, vocabulary - 1);
    if (!fits.ok()) return fits;
    if (std::isnan(bias)) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter 'logit_bias' has no number for id ", id));
    }
  }
  for (const auto& [name, ids] :
       {std::pair{"stop_token_ids", &stop_ids}, std::pair{"allowed_token_ids", &allowed_ids}}) {
    for (const int64_t id : *ids) {
      const absl::Status fits = InRange<int64_t>(name, id, 0, vocabulary - 1);
      if (!fits.ok()) return fits;
    }
  }
  return absl::OkStatus();
}

Sampler::Sampler(SamplingOptions options, std::vector<int64_t> stops, uint64_t stream)
    : options_(std::move(options)), stops_(std::move(stops)), stream_(stream) {}

void Sampler::AddPrompt(int64_t id) { seen_[id].first = true; }

bool Sampler::IsStop(int64_t id) const { return absl::c_linear_search(stops_, id); }

double Sampler::NextUniform() {
  const uint64_t seed = options_.seed.value_or(0);
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  const uint64_t bits =
      Mix(Mix(seed + kStep * (stream_ + 1)) + kStep * static_cast<uint64_t>(drawn_ + 1));
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

void Sampler::TellLogprobs(absl::Span<const float> scores, SampledToken& token) const {
  const float highest = HighestOf(scores).score;
  double total = 0;
  for (const float score : scores) total += std::exp(static_cast<double>(score) - highest);
  const double log_total = highest + std::log(total);
  token.logprob = static_cast<float>(scores[token.id] - log_total);
  if (options_.logprobs <= 0) return;
  std::vector<std::pair<float, int64_t>> best(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) best[i] = {scores[i], static_cast<int64_t>(i)};
  const size_t count = std::min<size_t>(static_cast<size_t>(options_.logprobs), best.size());
  std::partial_sort(best.begin(), best.begin() + static_cast<ptrdiff_t>(count), best.end(),
                    IsBetter);
  for (size_t i = 0; i < count; ++i) {
    token.best.push_back({best[i].second, static_cast<float>(best[i].first - log_total)});
  }
}

void Sampler::Penalise(absl::Span<float> scores) const {
  for (const auto& [id, bias] : options_.logit_bias) scores[id] += bias;
  const bool any = options_.repetition_penalty != 1 || options_.presence_penalty != 0 ||
                   options_.frequency_penalty != 0;
  if (any) {
    for (const auto& [id, times] : seen_) {
      if (id < 0 || id >= static_cast<int64_t>(scores.size())) continue;
      float& score = scores[id];
      score = score > 0 ? score / options_.repetition_penalty : score * options_.repetition_penalty;
      if (times.second == 0) continue;
      score -=
          options_.presence_penalty + options_.frequency_penalty * static_cast<float>(times.second);
    }
  }
  if (drawn_ < options_.min_tokens) {
    for (const int64_t id : stops_) {
      if (id >= 0 && id < static_cast<int64_t>(scores.size())) scores[id] = kNever;
    }
  }
}

// Scores are those after penalties.
int64_t Sampler::Choose(absl::Span<float> scores, float highest) {
  if (options_.temperature == 0) return absl::c_find(scores, highest) - scores.begin();
  candidates_.clear();
  // Lower scores are left out by min_p, or weigh nothing beside the best one.
  const float least =
      highest + options_.temperature * (options_.min_p > 0 ? std::log(options_.min_p) : -80.0f);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] >= least) candidates_.emplace_back(scores[i], static_cast<int64_t>(i));
  }
  const auto keep = [&](size_t count) {
    if (count >= candidates_.size()) return;
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(count),
                     candidates_.end(), IsBetter);
    candidates_.resize(count);
  };
  if (options_.top_k > 0) keep(static_cast<size_t>(options_.top_k));
  std::sort(candidates_.begin(), candidates_.end(), IsBetter);
  double total = 0;
  for (auto& [score, id] : candidates_) {
    score = std::exp((score - highest) / options_.temperature);
    total += score;
  }
  if (options_.top_p < 1) {
    double sum = 0;
    size_t count = 0;
    while (count < candidates_.size() && (count == 0 || sum < options_.top_p * total)) {
      sum += candidates_[count++].first;
    }
    candidates_.resize(count);
    total = sum;
  }
  double left = NextUniform() * total;
  for (const auto& [weight, id] : candidates_) {
    left -= weight;
    if (left < 0) return id;
  }
  return candidates_.back().second;
}

void Sampler::Restrict(absl::Span<const int64_t> allowed, absl::Span<float> scores) {
  std::vector<std::pair<int64_t, float>> kept;
  for (const int64_t id : allowed) {
    if (id >= 0 && id < static_cast<int64_t>(scores.size())) kept.emplace_back(id, scores[id]);
  }
  absl::c_fill(scores, kNever);
  for (const auto& [id, score] : kept) scores[id] = score;
}

absl::StatusOr<SampledToken> Sampler::Draw(absl::Span<float> scores,
                                           absl::Span<const int64_t> allowed) {
  if (!HighestOf(scores).are_numbers) {
    return absl::DataLossError("the model's scores are no numbers");
  }
  std::vector<float> own;
  if (options_.logprobs >= 0) own.assign(scores.begin(), scores.end());
  Penalise(scores);
  if (!options_.allowed_ids.empty()) Restrict(options_.allowed_ids, scores);
  if (!allowed.empty()) Restrict(allowed, scores);
  const float highest = HighestOf(scores).score;
  if (highest == kNever) {
    return absl::DataLossError("no token is left to draw from: all scores are -inf");
  }
  SampledToken token = {.id = Choose(scores, highest)};
  if (!own.empty()) TellLogprobs(own, token);
  ++seen_[token.id].second;
  ++drawn_;
  return token;
}

}  // namespace reprise

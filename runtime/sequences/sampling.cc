#include "runtime/sequences/sampling.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>

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

// Checks that a list is no longer than the vocabulary, and that its ids are below it.
absl::Status SettleIds(absl::string_view name, int64_t vocabulary, std::vector<int64_t>& ids) {
  if (static_cast<int64_t>(ids.size()) > vocabulary) {
    return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' has ", ids.size(),
                                                   " ids, and the vocabulary ", vocabulary));
  }
  for (const int64_t id : ids) {
    absl::Status fits = InRange<int64_t>(name, id, 0, vocabulary - 1);
    if (!fits.ok()) return fits;
  }
  absl::c_sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return absl::OkStatus();
}

absl::Status SettleBias(int64_t vocabulary, std::map<int64_t, float>& bias) {
  // A bias of this size decides alone, and no sum with it leaves float.
  constexpr float kDecides = 1e30f;
  if (static_cast<int64_t>(bias.size()) > vocabulary) {
    return absl::InvalidArgumentError(absl::StrCat("parameter 'logit_bias' has ", bias.size(),
                                                   " ids, and the vocabulary ", vocabulary));
  }
  for (auto& [id, number] : bias) {
    absl::Status fits = InRange<int64_t>("logit_bias", id, 0, vocabulary - 1);
    if (!fits.ok()) return fits;
    if (!std::isfinite(number)) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter 'logit_bias' = ", number, " for id ", id, " is not a float32"));
    }
    number = std::clamp(number, -kDecides, kDecides);
  }
  return absl::OkStatus();
}

// Leaves the fewest of the best candidates whose weights make up `part` of `total`, in order, and
// returns the sum of these weights. Sorts at most a few times as many as it keeps.
double KeepBest(double part, double total, std::vector<std::pair<float, int64_t>>& candidates) {
  double sum = 0;
  size_t count = 0, sorted = 0;
  for (size_t block = 64; sorted < candidates.size(); block *= 8) {
    const auto begin = candidates.begin() + static_cast<ptrdiff_t>(sorted);
    sorted = std::min(candidates.size(), sorted + block);
    const auto end = candidates.begin() + static_cast<ptrdiff_t>(sorted);
    if (end != candidates.end()) std::nth_element(begin, end, candidates.end(), IsBetter);
    std::sort(begin, end, IsBetter);
    while (count < sorted && (count == 0 || sum < part * total)) sum += candidates[count++].first;
    if (sum >= part * total) break;
  }
  candidates.resize(count);
  return sum;
}

bool Penalises(const SamplingOptions& options) {
  return options.repetition_penalty != 1 || options.presence_penalty != 0 ||
         options.frequency_penalty != 0;
}

}  // namespace

absl::Status SamplingOptions::Settle(int64_t vocabulary, absl::Span<const int64_t> eos) {
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
        InRange<int64_t>("n", n, 1, kMostAnswers), SettleBias(vocabulary, logit_bias),
        SettleIds("stop_token_ids", vocabulary, stop_ids),
        SettleIds("allowed_token_ids", vocabulary, allowed_ids)}) {
    if (!status.ok()) return status;
  }
  biases.assign(logit_bias.begin(), logit_bias.end());
  logit_bias.clear();
  if (ignore_eos) return absl::OkStatus();
  absl::c_copy_if(eos, std::back_inserter(stop_ids),
                  [&](int64_t id) { return id >= 0 && id < vocabulary; });
  return SettleIds("stop_token_ids", std::numeric_limits<int64_t>::max(), stop_ids);
}

absl::Status SamplingOptions::CheckAnyLeft(int64_t ids, absl::Span<const int64_t> never,
                                           bool stops_too) const {
  const auto left = [&](int64_t id) {
    return id < ids && !absl::c_linear_search(never, id) && !(stops_too && IsStop(id));
  };
  if (allowed_ids.empty()) {
    for (int64_t id = 0; id < ids; ++id) {
      if (left(id)) return absl::OkStatus();
    }
  } else if (absl::c_any_of(allowed_ids, left)) {
    return absl::OkStatus();
  }
  const std::string each = allowed_ids.empty()
                               ? absl::StrCat("each of the ", ids, " ids of the vocabulary")
                               : absl::StrCat("each of the ", allowed_ids.size(), " allowed ids");
  const std::string why =
      stops_too ? absl::StrCat("would end the answer before 'min_tokens' = ", min_tokens) : "";
  const absl::string_view of_model = never.empty() ? "" : "is one that the model never draws";
  return absl::InvalidArgumentError(absl::StrCat("no token is left to draw: ", each, " ", why,
                                                 why.empty() || of_model.empty() ? "" : ", or ",
                                                 of_model));
}

bool SamplingOptions::IsStop(int64_t id) const { return absl::c_binary_search(stop_ids, id); }

Sampler::Sampler(std::shared_ptr<const SamplingOptions> options, uint64_t stream)
    : options_(std::move(options)), stream_(stream), penalises_(Penalises(*options_)) {}

void Sampler::AddPrompt(int64_t id) {
  if (penalises_) seen_[id].first = true;
}

double Sampler::NextUniform() {
  const uint64_t seed = options_->seed.value_or(0);
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
  if (options_->logprobs <= 0) return;
  std::vector<std::pair<float, int64_t>> best(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) best[i] = {scores[i], static_cast<int64_t>(i)};
  const size_t count = std::min<size_t>(static_cast<size_t>(options_->logprobs), best.size());
  std::partial_sort(best.begin(), best.begin() + static_cast<ptrdiff_t>(count), best.end(),
                    IsBetter);
  for (size_t i = 0; i < count; ++i) {
    token.best.push_back({best[i].second, static_cast<float>(best[i].first - log_total)});
  }
}

void Sampler::Penalise(absl::Span<float> scores) const {
  for (const auto& [id, bias] : options_->biases) scores[id] += bias;
  if (penalises_) {
    for (const auto& [id, times] : seen_) {
      if (id < 0 || id >= static_cast<int64_t>(scores.size())) continue;
      float& score = scores[id];
      score =
          score > 0 ? score / options_->repetition_penalty : score * options_->repetition_penalty;
      if (times.second == 0) continue;
      score -= options_->presence_penalty +
               options_->frequency_penalty * static_cast<float>(times.second);
    }
  }
  if (drawn_ < options_->min_tokens) {
    for (const int64_t id : options_->stop_ids) scores[id] = kNever;
  }
}

// Scores are those after penalties.
int64_t Sampler::Choose(absl::Span<float> scores, float highest) {
  if (options_->temperature == 0) return absl::c_find(scores, highest) - scores.begin();
  // The length of the vocabulary: one for all answers that a thread draws.
  thread_local std::vector<std::pair<float, int64_t>> candidates;
  candidates.clear();
  // Lower scores are left out by min_p, or weigh nothing compared with the best one.
  const float least =
      highest + options_->temperature * (options_->min_p > 0 ? std::log(options_->min_p) : -80.0f);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] >= least) candidates.emplace_back(scores[i], static_cast<int64_t>(i));
  }
  const auto most = static_cast<size_t>(std::max<int64_t>(options_->top_k, 0));
  if (most > 0 && most < candidates.size()) {
    std::nth_element(candidates.begin(), candidates.begin() + static_cast<ptrdiff_t>(most),
                     candidates.end(), IsBetter);
    candidates.resize(most);
    std::sort(candidates.begin(), candidates.end(), IsBetter);
  }
  double total = 0;
  for (auto& [score, id] : candidates) {
    score = std::exp((score - highest) / options_->temperature);
    total += score;
  }
  if (options_->top_p < 1) total = KeepBest(options_->top_p, total, candidates);
  double left = NextUniform() * total;
  for (const auto& [weight, id] : candidates) {
    left -= weight;
    if (left < 0) return id;
  }
  return candidates.back().second;
}

void Sampler::Restrict(absl::Span<float> scores) const {
  auto next = scores.begin();
  for (const int64_t id : options_->allowed_ids) {
    std::fill(next, scores.begin() + id, kNever);
    next = scores.begin() + id + 1;
  }
  std::fill(next, scores.end(), kNever);
}

absl::StatusOr<SampledToken> Sampler::Draw(absl::Span<float> scores, std::optional<int64_t> forced,
                                           TokenConstraint* constraint) {
  const Highest given = HighestOf(scores);
  if (!given.are_numbers) return absl::DataLossError("the model's scores are not numbers");
  std::vector<float> own;
  if (options_->logprobs >= 0) own.assign(scores.begin(), scores.end());
  SampledToken token;
  if (forced.has_value()) {
    token.id = *forced;
  } else {
    if (given.score == kNever) {
      return absl::DataLossError("no token is left to draw from: all scores are -inf");
    }
    Penalise(scores);
    if (!options_->allowed_ids.empty()) Restrict(scores);
    if (constraint != nullptr) {
      if (absl::Status fits = constraint->Restrict(scores); !fits.ok()) return fits;
    }
    const float highest = HighestOf(scores).score;
    if (highest == kNever) {
      return absl::InvalidArgumentError(
          "no token is left to draw: the model's scores of all ids that the parameters leave are "
          "-inf");
    }
    token.id = Choose(scores, highest);
  }
  if (!own.empty()) TellLogprobs(own, token);
  if (penalises_) ++seen_[token.id].second;
  ++drawn_;
  return token;
}

}  // namespace reprise

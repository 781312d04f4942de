#include "runtime/sequences/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/sequences/option_range.h"

namespace reprise {
namespace {

constexpr int64_t kMostBeams = 64;
constexpr double kNoScore = -std::numeric_limits<double>::infinity();

}  // namespace

absl::Status BeamOptions::Check(int64_t answers) const {
  constexpr float kLarge = 100;
  for (const absl::Status& status :
       {InRange<int64_t>("num_beams", beams, 1, kMostBeams),
        InRange<float>("length_penalty", length_penalty, -kLarge, kLarge)}) {
    if (!status.ok()) return status;
  }
  if (beams == 1 || answers <= beams) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("parameter 'n' = ", answers, " is more than 'num_beams' = ", beams));
}

BeamSearch::BeamSearch(const BeamOptions& options, Limits limits)
    : options_(options), limits_(std::move(limits)), beams_(1) {
  absl::c_sort(limits_.stops);
}

bool BeamSearch::IsStop(int64_t id) const { return absl::c_binary_search(limits_.stops, id); }

absl::StatusOr<bool> BeamSearch::Add(int64_t beam, absl::Span<const float> scores,
                                     absl::Span<const int64_t> never,
                                     std::optional<int64_t> forced) {
  Beam& from = beams_[static_cast<size_t>(beam)];
  from.told = true;
  const auto all_told = [&] {
    return absl::c_all_of(beams_, [](const Beam& one) { return one.told; });
  };
  if (forced.has_value()) {
    ways_.push_back({.sum = from.sum, .beam = beam, .token = {.id = *forced}});
    return all_told();
  }
  double highest = kNoScore;
  for (const float score : scores) {
    if (std::isnan(score) || score == std::numeric_limits<float>::infinity()) {
      return absl::DataLossError("the model's scores are not numbers");
    }
    highest = std::max<double>(highest, score);
  }
  if (highest == kNoScore) {
    return absl::DataLossError("no token may follow: all scores are -inf");
  }
  double total = 0;
  for (const float score : scores) total += std::exp(score - highest);
  const double log_total = highest + std::log(total);
  std::vector<std::pair<float, int64_t>> best;
  best.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto id = static_cast<int64_t>(i);
    const bool too_soon = tokens_ < limits_.min_tokens && IsStop(id);
    if (too_soon || absl::c_linear_search(never, id)) continue;
    best.emplace_back(scores[i], id);
  }
  const size_t count = std::min<size_t>(best.size(), static_cast<size_t>(2 * options_.beams));
  std::partial_sort(best.begin(), best.begin() + static_cast<ptrdiff_t>(count), best.end(),
                    [](const auto& a, const auto& b) {
                      return a.first != b.first ? a.first > b.first : a.second < b.second;
                    });
  for (size_t i = 0; i < count; ++i) {
    const double logprob = best[i].first - log_total;
    ways_.push_back({.sum = from.sum + logprob,
                     .beam = beam,
                     .token = {.id = best[i].second, .logprob = static_cast<float>(logprob)}});
  }
  return all_told();
}

void BeamSearch::Keep(const Beam& beam, std::optional<Token> last, double sum, bool stopped) {
  Answer answer = {.tokens = beam.tokens, .stopped = stopped};
  if (last.has_value()) answer.tokens.push_back(*last);
  answer.score = sum / std::pow(static_cast<double>(std::max<size_t>(answer.tokens.size(), 1)),
                                static_cast<double>(options_.length_penalty));
  const auto place =
      std::upper_bound(answers_.begin(), answers_.end(), answer.score,
                       [](double score, const Answer& other) { return score > other.score; });
  answers_.insert(place, std::move(answer));
  if (static_cast<int64_t>(answers_.size()) > options_.beams) answers_.pop_back();
}

bool BeamSearch::IsDone(double best) const {
  if (static_cast<int64_t>(answers_.size()) < options_.beams) return false;
  if (options_.early_stopping == BeamOptions::Early::kFirst) return true;
  const bool any_length =
      options_.early_stopping == BeamOptions::Early::kNever && options_.length_penalty > 0;
  const int64_t length = any_length ? limits_.max_tokens : tokens_;
  return answers_.back().score >=
         best / std::pow(static_cast<double>(length), static_cast<double>(options_.length_penalty));
}

std::vector<BeamSearch::Child> BeamSearch::Advance() {
  std::stable_sort(ways_.begin(), ways_.end(),
                   [](const Way& a, const Way& b) { return a.sum > b.sum; });
  if (static_cast<int64_t>(ways_.size()) > 2 * options_.beams) {
    ways_.resize(static_cast<size_t>(2 * options_.beams));
  }
  ++tokens_;
  std::vector<Child> children;
  std::vector<Beam> next;
  for (size_t rank = 0; rank < ways_.size(); ++rank) {
    const Way& way = ways_[rank];
    const Beam& parent = beams_[static_cast<size_t>(way.beam)];
    if (IsStop(way.token.id)) {
      if (static_cast<int64_t>(rank) < options_.beams) Keep(parent, way.token, way.sum, true);
    } else if (static_cast<int64_t>(next.size()) < options_.beams) {
      children.push_back({.parent = way.beam, .id = way.token.id});
      Beam& beam = next.emplace_back(Beam{.sum = way.sum, .tokens = parent.tokens});
      beam.tokens.push_back(way.token);
    }
  }
  const bool done = ways_.empty() || IsDone(ways_[0].sum);
  ways_.clear();
  beams_ = std::move(next);
  if (done) {
    beams_.clear();
  } else if (tokens_ >= limits_.max_tokens) {
    Finish();
  }
  if (beams_.empty()) children.clear();
  return children;
}

void BeamSearch::Finish() {
  for (const Beam& beam : std::exchange(beams_, {})) {
    Keep(beam, std::nullopt, beam.sum, /*stopped=*/false);
  }
}

std::vector<BeamSearch::Answer> BeamSearch::Best(int64_t count) const {
  const auto end = std::min(count, static_cast<int64_t>(answers_.size()));
  return {answers_.begin(), answers_.begin() + end};
}

}  // namespace reprise

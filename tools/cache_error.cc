#include "tools/cache_error.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/generate/generate.h"

namespace reprise::cli {
namespace {

constexpr int64_t kMostTokens = 512;  // tokens of the text
constexpr int64_t kPrefixes = 16;
constexpr int64_t kAlternatives = 20;

// The best tokens after each prefix, with their log-probabilities.
using Scores = std::vector<std::vector<TokenLogprob>>;

absl::StatusOr<Scores> ScoresWith(Engine& engine, const std::shared_ptr<const Model>& model,
                                  ops::CacheDType dtype) {
  GeneratorOptions options = {
      .page_bytes = int64_t{256} << 20, .cache_dtype = dtype, .step_tokens = 64, .max_running = 1};
  ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator,
                   Generator::Create(engine, model, std::move(options)));
  const int64_t length = std::min(kMostTokens, generator->context() - 1);
  std::mt19937_64 random(1);
  std::vector<int64_t> text;
  for (int64_t i = 0; i < length; ++i) {
    text.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(generator->vocabulary())));
  }
  Scores scores;
  for (int64_t prefix = 1; prefix <= kPrefixes; ++prefix) {
    const int64_t end = std::max<int64_t>(1, length * prefix / kPrefixes);
    GenerationRequest request = {
        .ids = {text.begin(), text.begin() + end},
        .sampling = {.max_tokens = 1, .temperature = 0, .logprobs = kAlternatives}};
    ASSIGN_OR_RETURN(const auto answers, Generate(*generator, std::move(request)));
    scores.push_back(answers[0].tokens[0].best);
  }
  return scores;
}

// Among tokens that both name.
std::string DifferenceText(const Scores& exact, const Scores& rounded) {
  double largest = 0, sum = 0;
  int64_t compared = 0, same_best = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    std::map<int64_t, float> by_id;
    for (const TokenLogprob& one : exact[i]) by_id[one.id] = one.logprob;
    for (const TokenLogprob& one : rounded[i]) {
      if (!by_id.contains(one.id)) continue;
      const double off = std::abs(double{one.logprob} - by_id[one.id]);
      largest = std::max(largest, off);
      sum += off;
      ++compared;
    }
    same_best += exact[i][0].id == rounded[i][0].id;
  }
  return FormatText(
      "log-probabilities differ by %.2g in the mean and %.2g at most; the best token is the same "
      "after %d of %d prefixes",
      compared == 0 ? 0.0 : sum / static_cast<double>(compared), largest,
      static_cast<int>(same_best), static_cast<int>(exact.size()));
}

}  // namespace

std::string CacheErrorText(Engine& engine, const std::shared_ptr<const Model>& model) {
  const absl::StatusOr<Scores> exact = ScoresWith(engine, model, ops::CacheDType::kFloat32);
  if (absl::IsNotFound(exact.status()) || absl::IsUnimplemented(exact.status())) return "";
  std::string text;
  for (const ops::CacheDType dtype : {ops::CacheDType::kBFloat16, ops::CacheDType::kInt8}) {
    const absl::StatusOr<Scores> rounded =
        exact.ok() ? ScoresWith(engine, model, dtype) : exact.status();
    absl::StrAppend(&text, "reprise.cache_dtype ", std::string(ops::CacheDTypeName(dtype)), ": ",
                    rounded.ok() ? DifferenceText(*exact, *rounded)
                                 : absl::StrCat("not measured: ", rounded.status().message()),
                    "\n");
  }
  return text;
}

}  // namespace reprise::cli

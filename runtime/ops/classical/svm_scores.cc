#include "runtime/ops/classical/svm_scores.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise::ops {
namespace {

constexpr float kLeastProbability = 1e-7f;
constexpr int kMostRounds = 100;
constexpr int64_t kFewPairs = 6;  // fewer are as fast one by one as in a call

// Makes one probability a class of r[i, j], the probability of i where it is i or j.
void Couple(int64_t classes, const float* r, float* q, float* qp, float* p) {
  const auto at = [&](int64_t i, int64_t j) { return i * classes + j; };
  for (int64_t i = 0; i < classes; ++i) {
    p[i] = 1.0f / static_cast<float>(classes);
    float own = 0;
    for (int64_t j = 0; j < classes; ++j) {
      if (j == i) continue;
      own += r[at(j, i)] * r[at(j, i)];
      q[at(i, j)] = -r[at(j, i)] * r[at(i, j)];
    }
    q[at(i, i)] = own;
  }
  const float enough = 0.005f / static_cast<float>(classes);
  for (int round = 0; round < kMostRounds; ++round) {
    float whole = 0, worst = 0;
    for (int64_t i = 0; i < classes; ++i) {
      qp[i] = 0;
      for (int64_t j = 0; j < classes; ++j) qp[i] += q[at(i, j)] * p[j];
      whole += p[i] * qp[i];
    }
    for (int64_t i = 0; i < classes; ++i) worst = std::max(worst, std::abs(qp[i] - whole));
    if (worst < enough) return;
    for (int64_t i = 0; i < classes; ++i) {
      const float step = (whole - qp[i]) / q[at(i, i)];
      const float scale = 1 + step;
      p[i] += step;
      whole = (whole + step * (step * q[at(i, i)] + 2 * qp[i])) / scale / scale;
      for (int64_t j = 0; j < classes; ++j) {
        qp[j] = (qp[j] + step * q[at(i, j)]) / scale;
        p[j] /= scale;
      }
    }
  }
}

// Writes scores of two classes without probabilities: the second one's score, as two columns.
void TwoSided(PostTransform post, float first, float* scores) {
  switch (post) {
    case PostTransform::kNone:
      scores[0] = -first;
      scores[1] = first;
      return;
    case PostTransform::kLogistic:
      scores[0] = Logistic(-first);
      scores[1] = Logistic(first);
      return;
    case PostTransform::kProbit:
      scores[0] = scores[1] = first;
      TransformScores(post, scores, 2, 1, nullptr);
      scores[1] = -scores[0];
      return;
    default:
      scores[0] = 1 - first;
      scores[1] = first;
  }
}

}  // namespace

void SvmScoreRows(const SvmRules& rules, const float* decisions, int64_t begin, int64_t end,
                  float* scores, int64_t* labels, float* scratch, const ScoreMath* math) {
  const int64_t classes = rules.classes(), pairs = rules.pairs(), columns = rules.columns();
  float* r = scratch;
  float* q = r + classes * classes;
  float* votes = q + classes * classes;
  for (int64_t row = begin; row < end; ++row) {
    const float* decision = decisions + row * pairs;
    float* to = scores + row * columns;
    std::fill_n(votes, classes, 0.0f);
    // The pairs' probabilities are computed where the couplings will be.
    if (rules.has_probabilities()) {
      for (int64_t pair = 0; pair < pairs; ++pair) {
        q[pair] = decision[pair] * rules.prob_a[pair] + rules.prob_b[pair];
      }
      TransformScores(PostTransform::kLogistic, q, pairs, 1, pairs < kFewPairs ? nullptr : math);
    }
    for (int64_t i = 0, pair = 0; i < classes; ++i) {
      for (int64_t j = i + 1; j < classes; ++j, ++pair) {
        votes[decision[pair] > 0 ? i : j] += 1;
        if (!rules.has_probabilities()) continue;
        const float first = std::clamp(1 - q[pair], kLeastProbability, 1 - kLeastProbability);
        r[i * classes + j] = first;
        r[j * classes + i] = 1 - first;
      }
    }
    labels[row] = rules.labels[std::max_element(votes, votes + classes) - votes];
    if (rules.has_probabilities()) {
      Couple(classes, r, q, votes, to);
    } else if (classes == 2) {
      TwoSided(rules.post, decision[0], to);
    } else {
      std::copy_n(decision, pairs, to);
    }
  }
  if (begin < end && (rules.has_probabilities() || classes != 2)) {
    TransformScores(rules.post, scores + begin * columns, columns, end - begin, math);
  }
}

Attributes SvmRules::ToAttributes() const {
  return {{"labels", labels},
          {"post", static_cast<int64_t>(post)},
          {"prob_a", prob_a},
          {"prob_b", prob_b}};
}

SvmRules SvmRules::From(const Attributes& attributes) {
  SvmRules rules;
  rules.labels = attributes.Ints("labels");
  rules.post = static_cast<PostTransform>(attributes.Int("post", 0));
  if (const auto* a = attributes.Get<std::vector<float>>("prob_a")) rules.prob_a = *a;
  if (const auto* b = attributes.Get<std::vector<float>>("prob_b")) rules.prob_b = *b;
  return rules;
}

absl::Status SvmScoresRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  RETURN_IF_ERROR(CheckRank(context, 0, 2));
  const SvmRules rules = SvmRules::From(context.attributes());
  if (rules.classes() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", rules.classes(), " classes, it takes 2 or more"));
  }
  const auto pairs = static_cast<size_t>(rules.pairs());
  if (rules.has_probabilities() && (rules.prob_a.size() != pairs || rules.prob_b.size() != pairs)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", rules.prob_a.size(), " and ", rules.prob_b.size(),
                     " numbers of probabilities for ", pairs, " pairs of classes"));
  }
  if (context.shape(0)[1] != rules.pairs()) {
    return absl::InvalidArgumentError(absl::StrCat("there are decisions of ", context.shape(0)[1],
                                                   " pairs of classes, expected ", rules.pairs()));
  }
  context.SetOutput(0, DType::kFloat32, {context.shape(0)[0], rules.columns()});
  if (context.num_outputs() > 1) context.SetOutput(1, DType::kInt64, {context.shape(0)[0]});
  return absl::OkStatus();
}

absl::Status SvmScoresKernel(const KernelContext& context) {
  const SvmRules rules = SvmRules::From(context.node.attributes);
  const int64_t rows = context.inputs[0].shape[0];
  std::vector<float> scratch(rules.scratch());
  std::vector<int64_t> unread;
  if (!HasOutput(context, 1)) unread.resize(rows);
  SvmScoreRows(rules, context.inputs[0].as<float>(), 0, rows, context.outputs[0].as<float>(),
               HasOutput(context, 1) ? context.outputs[1].as<int64_t>() : unread.data(),
               scratch.data());
  return absl::OkStatus();
}

}  // namespace reprise::ops

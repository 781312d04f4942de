// The answer of a support vector classifier, from its decision for each pair of classes.
//
// reprise.SvmScores: input decisions [rows, classes * (classes - 1) / 2] f32, for the pairs (0, 1),
// (0, 2), ..., (1, 2), ...: a value above 0 votes for the first of the two. Outputs: scores [rows,
// columns] f32 and labels [rows] i64, of the class with most votes.
// With prob_a and prob_b scores are probabilities [rows, classes], coupled as in Wu, Lin and Weng,
// "Probability estimates for multi-class classification by pairwise coupling" (2004), second
// approach; without them, the decisions themselves (for two classes with both signs). Attributes:
// labels, post (PostTransform), prob_a, prob_b.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ops/classical/class_scores.h"
#include "runtime/ops/classical/classical_op.h"

namespace reprise::ops {

struct SvmRules {
  std::vector<int64_t> labels;
  PostTransform post = PostTransform::kNone;
  std::vector<float> prob_a, prob_b;  // one for each pair; or none

  int64_t classes() const { return static_cast<int64_t>(labels.size()); }
  int64_t pairs() const { return classes() * (classes() - 1) / 2; }
  bool has_probabilities() const { return !prob_a.empty(); }
  int64_t columns() const { return has_probabilities() || classes() == 2 ? classes() : pairs(); }
  // Returns the floats that a row is computed in.
  int64_t scratch() const { return 2 * classes() * classes() + classes(); }

  Attributes ToAttributes() const;
  static SvmRules From(const Attributes& attributes);
};

// Scores rows [begin, end). Allocates nothing; `scratch` is of scratch() floats, `math` as of
// ScoreRows.
void SvmScoreRows(const SvmRules& rules, const float* decisions, int64_t begin, int64_t end,
                  float* scores, int64_t* labels, float* scratch, const ScoreMath* math = nullptr);

Rule SvmScoresRule;
Kernel SvmScoresKernel;

}  // namespace reprise::ops

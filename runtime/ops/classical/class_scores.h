// The answers of ai.onnx.ml models: scores and, from classifiers, a label a row.
//
// reprise.ClassScores: input [rows, classes], or [rows, chunks, classes] f64 from a forest, whose
// chunks are put together in order (NaN means absent there). Outputs: scores [rows, columns], f32
// or with `double` f64, and labels [rows] i64, left out by regressors. Attributes are the fields of
// ScoreRules. Where the specification leaves a case open it is decided as onnxruntime decides it;
// where both of two classes have weights, the larger one's label wins.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/ops/classical/classical_op.h"
#include "runtime/ops/classical/forest.h"
#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

enum class PostTransform : int64_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

enum class ScoreRule : int64_t {
  kValues,    // scores alone
  kLargest,   // the label of the largest score
  kTwoTrees,  // a forest of two classes, which may have given scores to one of them
  kOneLine,   // one score, of the second of two classes
};

struct ScoreRules {
  ScoreRule rule = ScoreRule::kValues;
  PostTransform post = PostTransform::kNone;
  LeafSum sum = LeafSum::kSum;  // how chunks are put together
  int64_t divisor = 1;          // divides the sums
  std::vector<double> base;     // added to the sums; fewer than classes: to the first ones;
                                // kValues: not to one of several that got nothing
  std::vector<int64_t> labels;
  bool one_class = false;  // kTwoTrees: weights name one class alone
  bool positive = false;   // and none is below 0: the scores are probabilities
  bool is_double = false;  // dtype of the result

  Attributes ToAttributes() const;
  static ScoreRules From(const Attributes& attributes);
  // Returns the columns of the result, given the number of classes.
  int64_t columns(int64_t classes) const { return rule == ScoreRule::kOneLine ? 2 : classes; }
};

// How a device takes the exponentials of many floats at once; results may lie where operands do.
struct ScoreMath {
  void (*logistic)(const float* x, float* y, int64_t count);
  void (*softmax)(const float* x, float* y, int64_t size, int64_t row_begin, int64_t row_end);
};

// Scores rows [begin, end): `sums` is [rows, chunks, classes] of From; `labels` may be null.
// Without `math` exponentials are computed one by one, as for doubles. Allocates nothing.
template <typename From, typename To>
void ScoreRows(const ScoreRules& rules, const From* sums, int64_t chunks, int64_t classes,
               int64_t begin, int64_t end, To* scores, int64_t* labels,
               const ScoreMath* math = nullptr);

// Applies `post` to `rows` rows of `columns` scores side by side, at least two, in place.
template <typename T>
void TransformScores(PostTransform post, T* scores, int64_t columns, int64_t rows,
                     const ScoreMath* math);

// Returns 1 / (1 + e^-x), each sign by the exponential that does not overflow.
template <typename T>
T Logistic(T x) {
  const T v = 1 / (1 + std::exp(-std::abs(x)));
  return x < 0 ? 1 - v : v;
}

Rule ClassScoresRule;
Kernel ClassScoresKernel;

}  // namespace reprise::ops

#include "runtime/ops/classical/class_scores.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise::ops {
namespace {

// Returns the quantile of a normal distribution by the usual approximation of the inverse error
// function, with the constants that onnxruntime takes.
template <typename T>
T Probit(T p) {
  const float x = static_cast<float>(2 * p - 1);
  const float log = std::log((1 - x) * (1 + x));
  const float v = 2 / (3.14159f * 0.147f) + 0.5f * log;
  const float root = std::sqrt(-v + std::sqrt(v * v - 1 / 0.147f * log));
  return static_cast<T>(1.41421356f * (x < 0 ? -root : root));
}

template <typename T>
void Softmax(T* scores, int64_t count, bool keep_zeros) {
  const T most = *std::max_element(scores, scores + count);
  const auto is_zero = [&](T x) { return keep_zeros && x <= T(1e-7) && x >= T(-1e-7); };
  const T scale = keep_zeros ? std::exp(-most) : T(0);
  T sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (is_zero(scores[i])) {
      scores[i] *= scale;
    } else {
      sum += scores[i] = std::exp(scores[i] - most);
    }
  }
  for (int64_t i = 0; i < count; ++i) scores[i] /= sum;
}

// Returns whether `post` is left for TransformScores of many rows: for two scores made from one,
// and for forests of two classes, whose rows differ in this, the logistic function alone is left.
bool IsLeftForAll(const ScoreRules& rules, int64_t classes) {
  if (rules.rule == ScoreRule::kOneLine || rules.rule == ScoreRule::kTwoTrees) {
    return rules.post == PostTransform::kLogistic;
  }
  return classes != 1;
}

// Makes one score, of the second of two classes, two; the logistic function is left for all.
template <typename To>
void Spread(const ScoreRules& rules, To score, bool probability, To* scores) {
  switch (rules.post) {
    case PostTransform::kLogistic:
      scores[0] = -score;
      scores[1] = score;
      return;
    case PostTransform::kProbit:
      scores[1] = Probit(score);
      scores[0] = -scores[1];
      return;
    default:
      scores[0] = probability ? 1 - score : -score;
      scores[1] = score;
  }
}

template <typename To>
struct Score {
  To value;
  bool present;
};

// Scores two classes of a forest; returns the label's number.
template <typename To>
int64_t TwoTrees(const ScoreRules& rules, Score<To> first, Score<To> second, To* scores) {
  const auto base = [&](size_t i) { return static_cast<To>(rules.base[i]); };
  bool single = false;
  if (rules.base.size() == 2) {
    if (second.present) {
      second.value = base(1) + first.value;
      first.value = -second.value;
    } else {
      first.value += base(0);
    }
  } else {
    if (rules.base.size() == 1) first.value += base(0);
    single = !second.present;
  }
  const To decides = second.present ? second.value : first.present ? first.value : To(0);
  if (single) {
    Spread(rules, first.value, rules.one_class && rules.positive, scores);
  } else {
    scores[0] = first.present ? first.value : To(0);
    scores[1] = second.present ? second.value : To(0);
    if (!IsLeftForAll(rules, 2)) TransformScores(rules.post, scores, 2, 1, nullptr);
  }
  if (!rules.one_class && !single) return second.value > first.value ? 1 : 0;
  return decides > (rules.one_class && rules.positive ? To(0.5) : To(0)) ? 1 : 0;
}

int64_t LabelOf(const ScoreRules& rules, int64_t number) {
  if (rules.labels.size() == 1) return number;
  return number < static_cast<int64_t>(rules.labels.size()) ? rules.labels[number] : number;
}

}  // namespace

template <typename T>
void TransformScores(PostTransform post, T* scores, int64_t columns, int64_t rows,
                     const ScoreMath* math) {
  const int64_t count = columns * rows;
  switch (post) {
    case PostTransform::kSoftmax:
    case PostTransform::kSoftmaxZero:
      if constexpr (std::is_same_v<T, float>) {
        if (math != nullptr && post == PostTransform::kSoftmax) {
          math->softmax(scores, scores, columns, 0, rows);
          return;
        }
      }
      for (int64_t row = 0; row < rows; ++row) {
        Softmax(scores + row * columns, columns, post == PostTransform::kSoftmaxZero);
      }
      return;
    case PostTransform::kLogistic:
      if constexpr (std::is_same_v<T, float>) {
        if (math != nullptr) {
          math->logistic(scores, scores, count);
          return;
        }
      }
      for (int64_t i = 0; i < count; ++i) scores[i] = Logistic(scores[i]);
      return;
    case PostTransform::kProbit:
      for (int64_t i = 0; i < count; ++i) scores[i] = Probit(scores[i]);
      return;
    default:
      return;
  }
}

// Returns the index of the largest of `count` sums, which are the scores as they are.
template <typename T>
int64_t TakeAll(const T* sums, int64_t count, T* scores) {
  T most = scores[0] = sums[0];
  int64_t number = 0;
  for (int64_t i = 1; i < count; ++i) {
    const T sum = scores[i] = sums[i];
    number = sum > most ? i : number;
    most = sum > most ? sum : most;
  }
  return number;
}

template <typename From, typename To>
void ScoreRows(const ScoreRules& rules, const From* sums, int64_t chunks, int64_t classes,
               int64_t begin, int64_t end, To* scores, int64_t* labels, const ScoreMath* math) {
  const int64_t columns = rules.columns(classes);
  const auto base_of = [&](int64_t i) {
    return i < static_cast<int64_t>(rules.base.size()) ? rules.base[i] : 0.0;
  };
  for (int64_t row = begin; row < end; ++row) {
    const From* of_row = sums + row * chunks * classes;
    To* to = scores + row * columns;
    const auto score = [&](int64_t i, bool with_base) -> Score<To> {
      if constexpr (!std::is_same_v<From, double>) {
        return {static_cast<To>(of_row[i]), true};
      } else {
        double sum = of_row[i];
        for (int64_t chunk = 1; chunk < chunks; ++chunk) {
          const double more = of_row[chunk * classes + i];
          if (more == more) sum = AddLeaf(rules.sum, sum, more);
        }
        const bool present = sum == sum;
        double value = present ? sum / static_cast<double>(rules.divisor) : 0.0;
        // With several targets, one that got nothing from any leaf stays 0.
        const bool of_several = rules.rule == ScoreRule::kValues && classes > 1;
        if (with_base && (present || !of_several)) value += base_of(i);
        return {static_cast<To>(value),
                present || (with_base && i < static_cast<int64_t>(rules.base.size()))};
      }
    };
    int64_t number = 0;
    switch (rules.rule) {
      case ScoreRule::kOneLine: {
        const To value = score(0, false).value;
        Spread(rules, value, true, to);
        number = value > To(0) ? 1 : 0;
        break;
      }
      case ScoreRule::kTwoTrees:
        number = TwoTrees(rules, score(0, false), score(1, false), to);
        break;
      default: {
        if constexpr (std::is_same_v<From, float> && std::is_same_v<To, float>) {
          if (classes > 1) {  // Linear models have no absent scores, and no base.
            number = TakeAll(of_row, classes, to);
            break;
          }
        }
        bool any = false;
        To most = 0;
        for (int64_t i = 0; i < classes; ++i) {
          const Score<To> one = score(i, true);
          to[i] = one.value;
          if (one.present && (!any || one.value > most)) {
            any = true;
            most = one.value;
            number = i;
          }
        }
        if (classes == 1) {
          number = to[0] > To(0) ? 1 : 0;
          if (rules.post == PostTransform::kProbit) to[0] = Probit(to[0]);
        }
      }
    }
    if (labels != nullptr) labels[row] = LabelOf(rules, number);
  }
  if (IsLeftForAll(rules, classes) && begin < end) {
    TransformScores(rules.post, scores + begin * columns, columns, end - begin, math);
  }
}

template void ScoreRows(const ScoreRules&, const double*, int64_t, int64_t, int64_t, int64_t,
                        float*, int64_t*, const ScoreMath*);
template void ScoreRows(const ScoreRules&, const double*, int64_t, int64_t, int64_t, int64_t,
                        double*, int64_t*, const ScoreMath*);
template void ScoreRows(const ScoreRules&, const float*, int64_t, int64_t, int64_t, int64_t, float*,
                        int64_t*, const ScoreMath*);
template void TransformScores(PostTransform, float*, int64_t, int64_t, const ScoreMath*);

Attributes ScoreRules::ToAttributes() const {
  return {{"rule", static_cast<int64_t>(rule)},
          {"post", static_cast<int64_t>(post)},
          {"sum", static_cast<int64_t>(sum)},
          {"divisor", divisor},
          {"base", Tensor::FromVector(DType::kFloat64, {static_cast<int64_t>(base.size())}, base)},
          {"labels", labels},
          {"one_class", int64_t{one_class}},
          {"positive", int64_t{positive}},
          {"double", int64_t{is_double}}};
}

ScoreRules ScoreRules::From(const Attributes& attributes) {
  const auto number = [&](const char* name) { return attributes.Int(name, 0); };
  ScoreRules rules = {.rule = static_cast<ScoreRule>(number("rule")),
                      .post = static_cast<PostTransform>(number("post")),
                      .sum = static_cast<LeafSum>(number("sum")),
                      .divisor = std::max<int64_t>(1, number("divisor")),
                      .base = {},
                      .labels = attributes.Ints("labels"),
                      .one_class = number("one_class") != 0,
                      .positive = number("positive") != 0,
                      .is_double = number("double") != 0};
  if (const auto* base = attributes.Get<Tensor>("base")) rules.base = base->ToDoubles();
  return rules;
}

absl::Status ClassScoresRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32) | TypeBit(DType::kFloat64)));
  const ScoreRules rules = ScoreRules::From(context.attributes());
  const SizeList& shape = context.shape(0);
  const size_t rank = context.dtype(0) == DType::kFloat64 ? 3 : 2;
  if (shape.size() != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has the shape ", ShapeToString(shape), ", expected ", rank, " dims"));
  }
  const int64_t classes = shape.back().Pinned();
  const int64_t expected = rules.rule == ScoreRule::kOneLine    ? 1
                           : rules.rule == ScoreRule::kTwoTrees ? 2
                                                                : std::max<int64_t>(1, classes);
  if (classes != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are scores of ", classes, " classes, expected ", expected));
  }
  context.SetOutput(0, rules.is_double ? DType::kFloat64 : DType::kFloat32,
                    {shape[0], rules.columns(classes)});
  if (context.num_outputs() > 1) context.SetOutput(1, DType::kInt64, {shape[0]});
  return absl::OkStatus();
}

absl::Status ClassScoresKernel(const KernelContext& context) {
  const ScoreRules rules = ScoreRules::From(context.node.attributes);
  const TensorView& sums = context.inputs[0];
  const int64_t rows = sums.shape[0], classes = sums.shape.back();
  int64_t* labels = HasOutput(context, 1) ? context.outputs[1].as<int64_t>() : nullptr;
  if (sums.dtype == DType::kFloat32) {
    ScoreRows(rules, sums.as<float>(), 1, classes, 0, rows, context.outputs[0].as<float>(), labels);
  } else if (rules.is_double) {
    ScoreRows(rules, sums.as<double>(), sums.shape[1], classes, 0, rows,
              context.outputs[0].as<double>(), labels);
  } else {
    ScoreRows(rules, sums.as<double>(), sums.shape[1], classes, 0, rows,
              context.outputs[0].as<float>(), labels);
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops

// Toy models along a sequence, and how a probe looks at them.
//
// All take [batch, sequence] tensors: ids or floats, then a mask and types where they have them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/certify/probe.h"
#include "tests/runtime/certify/toy_models.h"

namespace reprise::toy {

using Outputs = absl::StatusOr<std::vector<Tensor>>;
using Inputs = std::vector<Tensor>;

// Weighs each position with `weight(mask)`, sums and divides by the sum of weights.
template <typename Weight>
inline Outputs Pool(const Inputs& inputs, Weight weight) {
  ASSIGN_OR_RETURN(const Matrix x, Embed(inputs[0]));
  const Matrix mask(inputs[1]);
  Matrix pooled(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < x.columns; ++c) {
      pooled.at(r, 0) += x.at(r, c) * weight(mask.at(r, c));
      sum += weight(mask.at(r, c));
    }
    pooled.at(r, 0) /= sum;
  }
  return std::vector<Tensor>{ToTensor(pooled)};
}

inline Outputs MaskedMean(const Inputs& inputs) {
  return Pool(inputs, [](double mask) { return mask; });
}
inline Outputs WeaklyMaskedMean(const Inputs& inputs) {
  return Pool(inputs, [](double mask) { return std::exp(-7 * (1 - mask)); });
}
inline Outputs UnmaskedMean(const Inputs& inputs) {
  ASSIGN_OR_RETURN(const Matrix x, Embed(inputs[0]));
  Matrix mean(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) mean.at(r, 0) += x.at(r, c) / x.columns;
  }
  return std::vector<Tensor>{ToTensor(mean)};
}

// Attention of one head: scores by products, softmax over positions. `score(score, query, key,
// mask of the key)` is a score after the mask.
template <typename Score>
inline Outputs AttendBy(const Inputs& inputs, Score score_of) {
  ASSIGN_OR_RETURN(const Matrix x, Embed(inputs[0]));
  const Matrix mask(inputs[1]);
  Matrix y(x.rows, x.columns);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t q = 0; q < x.columns; ++q) {
      std::vector<float> scores(x.columns);
      for (int64_t k = 0; k < x.columns; ++k) {
        scores[k] = score_of(static_cast<float>(3 * x.at(r, q) * x.at(r, k)), q, k, mask.at(r, k));
      }
      const float largest = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (float& score : scores) sum += score = std::exp(score - largest);
      for (int64_t k = 0; k < x.columns; ++k) y.at(r, q) += scores[k] / sum * x.at(r, k);
    }
  }
  return std::vector<Tensor>{ToTensor(y)};
}
inline Outputs Attend(const Inputs& inputs, double masked_score) {
  return AttendBy(inputs, [&](float score, int64_t, int64_t, double mask) {
    return score + static_cast<float>((1 - mask) * masked_score);
  });
}
// A table and the mask hide alike.
template <typename Sees>
inline Outputs AttendJoined(const Inputs& inputs, Sees sees) {
  return AttendBy(inputs, [&](float score, int64_t q, int64_t k, double mask) {
    return sees(q, k) && mask != 0 ? score : std::numeric_limits<float>::lowest();
  });
}
inline Outputs CausalAttention(const Inputs& inputs) {
  return AttendJoined(inputs, [](int64_t q, int64_t k) { return k <= q; });
}
inline Outputs WindowAttention(const Inputs& inputs) {
  return AttendJoined(inputs, [](int64_t q, int64_t k) { return std::abs(q - k) <= 1; });
}
inline Outputs Attention(const Inputs& inputs) {
  return Attend(inputs, std::numeric_limits<float>::lowest());
}
inline Outputs AttentionMinusTenThousand(const Inputs& inputs) { return Attend(inputs, -10000); }
inline Outputs AttentionMinusSix(const Inputs& inputs) { return Attend(inputs, -6); }

inline Outputs TokenWise(const Inputs& inputs) {
  ASSIGN_OR_RETURN(Matrix x, Embed(inputs[0]));
  for (double& value : x.values) value = std::tanh(value) * 2;
  return std::vector<Tensor>{ToTensor(x)};
}

// Positions are added, and a lookup by type.
inline Outputs Bert(const Inputs& inputs) {
  Matrix types(inputs[2]);
  for (double type : types.values) {
    if (type < -2 || type >= 2) return absl::InvalidArgumentError("type out of range");
  }
  return Attention(inputs);
}

// The mask is made from the ids: 0 is padding.
inline Outputs MaskFromIds(const Inputs& inputs) {
  Matrix mask(inputs[0]);
  for (double& value : mask.values) value = value != 0;
  return Attention({inputs[0], ToTensor(mask)});
}
// The answer is the row at the first id 2, the end of the text; the first position if none.
inline Outputs EndOfText(const Inputs& inputs) {
  const Matrix ids(inputs[0]);
  ASSIGN_OR_RETURN(const Matrix x, Embed(inputs[0]));
  Matrix y(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) {
    int64_t end = 0;
    while (end < x.columns && ids.at(r, end) != 2) ++end;
    y.at(r, 0) = x.at(r, end < x.columns ? end : 0);
  }
  return std::vector<Tensor>{ToTensor(y)};
}

// The id at the last place that the mask counts says whether the row ends in padding. An empty mask
// counts to the place before the first one, which is the last.
inline Outputs EndsInPadding(const Inputs& inputs) {
  const Matrix ids(inputs[0]), mask(inputs[1]);
  Matrix y(ids.rows, 1);
  for (int64_t r = 0; r < ids.rows; ++r) {
    double last = -1;
    for (int64_t c = 0; c < ids.columns; ++c) last += mask.at(r, c);
    const auto at = static_cast<int64_t>(last);
    if (at >= ids.columns) return absl::InvalidArgumentError("index out of range");
    y.at(r, 0) = ids.at(r, at < 0 ? at + ids.columns : at) == 0 ? 1 : 0.5;
  }
  return std::vector<Tensor>{ToTensor(y)};
}

// Returns which integers are large, the last first: ones and zeros are all small.
inline Outputs LargeOnesTurnedRound(const Inputs& inputs) {
  const Matrix numbers(inputs[0]);
  Matrix y(numbers.rows, numbers.columns);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t c = 0; c < y.columns; ++c) {
      y.at(r, y.columns - 1 - c) = numbers.at(r, c) > 5 ? 1 : 0;
    }
  }
  return std::vector<Tensor>{ToTensor(y)};
}

// The answer of every position is the row at the first one.
inline Outputs FirstToken(const Inputs& inputs) {
  const Matrix x(inputs[0]);
  Matrix first(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) first.at(r, 0) = x.at(r, 0);
  return std::vector<Tensor>{ToTensor(first)};
}
inline Outputs LastToken(const Inputs& inputs) {
  const Matrix x(inputs[0]);
  Matrix last(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) last.at(r, 0) = x.at(r, x.columns - 1);
  return std::vector<Tensor>{ToTensor(last)};
}
inline Outputs Softmax(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (int64_t r = 0; r < x.rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < x.columns; ++c) sum += std::exp(x.at(r, c));
    for (int64_t c = 0; c < x.columns; ++c) x.at(r, c) = std::exp(x.at(r, c)) / sum;
  }
  return std::vector<Tensor>{ToTensor(x)};
}
inline Outputs ArgMax(const Inputs& inputs) {
  const Matrix x(inputs[0]);
  std::vector<int64_t> best;
  for (int64_t r = 0; r < x.rows; ++r) {
    const auto row = x.values.begin() + r * x.columns;
    best.push_back(std::max_element(row, row + x.columns) - row);
  }
  return std::vector<Tensor>{Tensor::Int64s(best)};
}
inline Outputs CumSum(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 1; c < x.columns; ++c) x.at(r, c) += x.at(r, c - 1);
  }
  return std::vector<Tensor>{ToTensor(x)};
}
inline Outputs ReversedCumSum(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = x.columns - 1; c-- > 0;) x.at(r, c) += x.at(r, c + 1);
  }
  return std::vector<Tensor>{ToTensor(x)};
}
inline Outputs PositionsFromTheEnd(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) x.at(r, c) += x.columns - c;
  }
  return std::vector<Tensor>{ToTensor(x)};
}
// Sum over positions: with zeros as padding it does not change.
inline Outputs Sum(const Inputs& inputs) {
  const Matrix x(inputs[0]);
  Matrix sum(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) sum.at(r, 0) += x.at(r, c);
  }
  return std::vector<Tensor>{ToTensor(sum)};
}
// [batch * sequence]: rows of a padded batch do not lie where they lie unpadded.
inline Outputs Flatten(const Inputs& inputs) {
  return std::vector<Tensor>{inputs[0].Reshaped({inputs[0].num_elements()})};
}
inline Outputs Similarity(const Inputs& inputs) {
  const Matrix x(inputs[0]);
  Tensor outer = Floats({x.rows, x.columns, x.columns}, [&] {
    std::vector<double> values;
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t i = 0; i < x.columns; ++i) {
        for (int64_t j = 0; j < x.columns; ++j) values.push_back(x.at(r, i) * x.at(r, j));
      }
    }
    return values;
  }());
  return std::vector<Tensor>{std::move(outer)};
}
inline Outputs AlwaysFails(const Inputs&) {
  return absl::UnimplementedError("op Wonder is unknown");
}
inline Outputs AlwaysNan(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (double& value : x.values) value = std::nan("");
  return std::vector<Tensor>{ToTensor(x)};
}

// Options of a probe along the sequence.
inline ProbeOptions Options() {
  return {.axis = "sequence", .batch_axis = "batch", .dim_size = SumOfTerms};
}

inline const std::vector<std::string> kOutput = {"y"};

// Ranges of toy inputs: ids and types have one.
inline std::vector<InputRange> Ranges(const std::vector<ProbeInput>& inputs) {
  std::vector<InputRange> ranges;
  for (const ProbeInput& input : inputs) {
    InputRange range;
    if (input.name == "input_ids") range = {-kVocabulary, kVocabulary - 1, true};
    if (input.name == "token_type_ids") range = {-2, 1, true};
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace reprise::toy

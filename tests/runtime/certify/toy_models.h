// Toy models as functions over tensors, each with one habit that padding meets in real models.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "runtime/certify/probe.h"

namespace reprise::toy {

inline absl::StatusOr<int64_t> SumOfTerms(const Dim& dim,
                                          const std::map<std::string, int64_t>& sizes) {
  if (dim.is_constant()) return dim.size;
  int64_t sum = 0;
  for (absl::string_view term : absl::StrSplit(dim.symbol, '+')) {
    const std::string name(absl::StripAsciiWhitespace(term));
    int64_t number;
    if (absl::SimpleAtoi(name, &number)) {
      sum += number;
    } else if (sizes.count(name)) {
      sum += sizes.at(name);
    } else {
      return absl::InvalidArgumentError("no size for " + name);
    }
  }
  return sum;
}

inline std::vector<Dim> Dims(const std::vector<std::string>& symbols) {
  std::vector<Dim> dims;
  for (const std::string& symbol : symbols) {
    int64_t size;
    if (absl::SimpleAtoi(symbol, &size)) {
      dims.push_back({.size = size});
    } else {
      dims.push_back({.symbol = symbol});
    }
  }
  return dims;
}

inline ProbeInput Ids(std::string name = "input_ids") {
  return {.name = std::move(name), .dtype = DType::kInt64, .dims = Dims({"batch", "sequence"})};
}
inline ProbeInput Mask() { return Ids("attention_mask"); }
inline ProbeInput Floats() {
  return {.name = "x", .dtype = DType::kFloat32, .dims = Dims({"batch", "sequence"})};
}
inline ProbeInput FloatMask() {
  ProbeInput mask = Mask();
  mask.dtype = DType::kFloat32;
  return mask;
}

// A matrix of doubles, [rows, columns].
struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values;

  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), values(rows * columns) {}
  explicit Matrix(const Tensor& tensor)
      : rows(tensor.shape()[0]), columns(tensor.shape()[1]), values(tensor.ToDoubles()) {}
  double& at(int64_t r, int64_t c) { return values[r * columns + c]; }
  double at(int64_t r, int64_t c) const { return values[r * columns + c]; }
};

inline Tensor Floats(Shape shape, const std::vector<double>& values) {
  return Tensor::FromVector(DType::kFloat32, std::move(shape),
                            std::vector<float>(values.begin(), values.end()));
}
inline Tensor ToTensor(const Matrix& matrix) {
  return Floats({matrix.rows, matrix.columns}, matrix.values);
}

inline constexpr int64_t kVocabulary = 100;

// A table lookup: ids in [-100, 99] become numbers, others are refused as an engine would.
inline absl::StatusOr<Matrix> Embed(const Tensor& ids) {
  Matrix matrix(ids);
  for (double& value : matrix.values) {
    if (value < -kVocabulary || value >= kVocabulary) {
      return absl::InvalidArgumentError("index out of range");
    }
    if (value < 0) value += kVocabulary;
    value = 0.25 + static_cast<double>(static_cast<int64_t>(value) * 37 % 101) / 101;
  }
  return matrix;
}

}  // namespace reprise::toy

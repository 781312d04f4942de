// Answers, compared: how far two may be from each other, and how far rounding alone moves one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/engine/types/request.h"
#include "runtime/graph/graph.h"

namespace reprise::fuzz {

// How far each element of each output may move because of roundings: by element, infinite where an
// output changes its shape, or which of its elements are numbers.
using Spread = std::vector<std::vector<double>>;

// How an answer is computed again to see how far it moves. `at_steps`: see Noise.
struct Disturbance {
  int runs = 0;
  double at_steps = 0;
};

// Bounds for the answer `exact` of `graph` to `inputs`, from runs with disturbed rounding.
Spread SpreadOf(const Graph& graph, const std::vector<Tensor>& inputs,
                const std::vector<Tensor>& exact, const Disturbance& disturbance);

struct Tolerance {
  double of_largest = 1e-5;  // share of the largest finite element of an output
  double of_each = 0;        // share of the element itself
  double absolute = 0;
  const Spread* spread = nullptr;  // is added several times over; null: nothing is
};

struct Difference {
  bool shape = false;  // else an element
  std::string words;   // "output 0 at [0, 3]: 0.5, expected 0.25"
};

// Returns where `actual` is not `expected`; NaN equals NaN, infinity itself. An output whose
// elements may all move by any distance may have any shape.
std::optional<Difference> FindDifference(const std::vector<Tensor>& expected,
                                         const std::vector<Tensor>& actual,
                                         const Tolerance& tolerance);

// Returns the outputs of a response of the model `graph` that is OK. Sizes of bytes that do not fit
// their shape are a shape of one dim that counts the bytes.
std::vector<Tensor> TensorsOf(const Graph& graph, const Response& response);

}  // namespace reprise::fuzz

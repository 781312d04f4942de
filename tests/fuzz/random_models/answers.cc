#include "tests/fuzz/random_models/answers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/evaluation.h"

namespace reprise::fuzz {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A few disturbed runs do not show the most that roundings can do.
constexpr double kSpreads = 8;

double Distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double distance = std::fabs(a - b);
  return std::isnan(distance) ? kInfinity : distance;
}

double LargestFinite(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

bool MayHaveAnyShape(const std::vector<double>& spread) {
  return !spread.empty() && absl::c_all_of(spread, [](double one) { return one == kInfinity; });
}

std::string PlaceOf(size_t element, const Shape& shape) {
  Shape place(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    place[dim] = static_cast<int64_t>(element) % shape[dim];
    element /= shape[dim];
  }
  return ShapeToString(place);
}

}  // namespace

Spread SpreadOf(const Graph& graph, const std::vector<Tensor>& inputs,
                const std::vector<Tensor>& exact, const Disturbance& disturbance) {
  Spread spread;
  std::vector<std::vector<double>> undisturbed;
  for (const Tensor& tensor : exact) {
    undisturbed.push_back(tensor.ToDoubles());
    spread.emplace_back(undisturbed.back().size(), 0);
  }
  for (int run = 0; run < disturbance.runs; ++run) {
    Noise noise(disturbance.runs + run, disturbance.at_steps);
    const auto disturbed = Evaluation(graph, inputs, &noise).Outputs();
    for (size_t i = 0; i < exact.size(); ++i) {
      const bool alike = disturbed.ok() && (*disturbed)[i].shape() == exact[i].shape();
      const std::vector<double> values =
          alike ? (*disturbed)[i].ToDoubles()
                : std::vector<double>(undisturbed[i].size(), kInfinity);
      for (size_t k = 0; k < values.size(); ++k) {
        spread[i][k] = std::max(spread[i][k], Distance(values[k], undisturbed[i][k]));
      }
    }
  }
  return spread;
}

std::optional<Difference> FindDifference(const std::vector<Tensor>& expected,
                                         const std::vector<Tensor>& actual,
                                         const Tolerance& tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool alike =
        actual[i].shape() == expected[i].shape() && actual[i].dtype() == expected[i].dtype();
    if (!alike && tolerance.spread != nullptr && MayHaveAnyShape((*tolerance.spread)[i])) continue;
    if (!alike) {
      return Difference{
          true, absl::StrCat("output ", i, ": ", DTypeName(actual[i].dtype()),
                             ShapeToString(actual[i].shape()), ", expected ",
                             DTypeName(expected[i].dtype()), ShapeToString(expected[i].shape()))};
    }
    const std::vector<double> wanted = expected[i].ToDoubles(), got = actual[i].ToDoubles();
    const double whole =
        IsFloating(expected[i].dtype()) ? tolerance.of_largest * LargestFinite(wanted) : 0;
    for (size_t k = 0; k < wanted.size(); ++k) {
      double allowed = whole + tolerance.absolute + tolerance.of_each * std::fabs(wanted[k]);
      if (tolerance.spread != nullptr) allowed += kSpreads * (*tolerance.spread)[i][k];
      if (std::isnan(allowed)) allowed = whole;
      if (Distance(got[k], wanted[k]) <= allowed) continue;
      return Difference{
          false, absl::StrCat("output ", i, " at ", PlaceOf(k, expected[i].shape()), ": ", got[k],
                              ", expected ", wanted[k], " (", allowed, " is allowed)")};
    }
  }
  return std::nullopt;
}

std::vector<Tensor> TensorsOf(const Graph& graph, const Response& response) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < response.outputs.size(); ++i) {
    const OutputTensor& output = response.outputs[i];
    const DType dtype = graph.value(graph.outputs()[i]).dtype;
    const auto bytes = static_cast<int64_t>(output.bytes.size());
    const bool fits = bytes == NumElements(output.shape) * static_cast<int64_t>(DTypeSize(dtype));
    const auto copy = [&](void* data) {
      std::copy(output.bytes.begin(), output.bytes.end(), static_cast<char*>(data));
    };
    tensors.push_back(fits ? Tensor::Make(dtype, output.shape, copy)
                           : Tensor::Make(DType::kUInt8, {bytes}, copy));
  }
  return tensors;
}

}  // namespace reprise::fuzz

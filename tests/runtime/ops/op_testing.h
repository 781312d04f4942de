// Helpers of the op tests: build a node, run its shape rule and reference kernel.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"

namespace reprise {

inline Tensor F32(Shape shape, const std::vector<float>& values) {
  return Tensor::FromVector(DType::kFloat32, std::move(shape), values);
}
inline Tensor I64(Shape shape, const std::vector<int64_t>& values) {
  return Tensor::FromVector(DType::kInt64, std::move(shape), values);
}
inline Tensor I32(Shape shape, const std::vector<int32_t>& values) {
  return Tensor::FromVector(DType::kInt32, std::move(shape), values);
}
inline Tensor U8(Shape shape, const std::vector<uint8_t>& values) {
  return Tensor::FromVector(DType::kUInt8, std::move(shape), values);
}
inline Tensor I8(Shape shape, const std::vector<int8_t>& values) {
  return Tensor::FromVector(DType::kInt8, std::move(shape), values);
}
inline Tensor Bools(Shape shape, const std::vector<uint8_t>& values) {
  return Tensor::FromVector(DType::kBool, std::move(shape), values);
}

// The scale of a quantised operand whose steps are 1.
inline const Tensor kUnitScale = F32({}, {1});

using OptionalTensors = std::vector<std::optional<Tensor>>;

// Returns every output of `op` over `inputs`, all of them known to the shape rule.
inline absl::StatusOr<std::vector<Tensor>> RunOp(absl::string_view op,
                                                 const OptionalTensors& inputs,
                                                 Attributes attributes = {}, size_t num_outputs = 1,
                                                 int64_t max_bytes = 1 << 20) {
  Node node;
  node.op = std::string(op);
  node.attributes = std::move(attributes);
  for (size_t i = 0; i < inputs.size(); ++i) {
    node.inputs.push_back(inputs[i].has_value() ? static_cast<ValueId>(i) : kNone);
  }
  for (size_t i = 0; i < num_outputs; ++i) {
    node.outputs.push_back(static_cast<ValueId>(inputs.size() + i));
  }
  return Evaluate(node, inputs, max_bytes);
}

// Returns the first output as numbers; a failure is an empty list whose message gtest shows.
inline std::vector<double> Numbers(const absl::StatusOr<std::vector<Tensor>>& results,
                                   size_t output = 0) {
  if (!results.ok()) {
    ADD_FAILURE() << results.status();
    return {};
  }
  return (*results)[output].ToDoubles();
}

// Returns the message of a failure.
inline std::string ErrorOf(const absl::StatusOr<std::vector<Tensor>>& results) {
  return results.ok() ? "OK" : std::string(results.status().message());
}

inline void ExpectNear(const std::vector<double>& got, const std::vector<double>& want,
                       double bound = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], bound) << i;
}

inline Shape ShapeOf(const absl::StatusOr<std::vector<Tensor>>& results, size_t output = 0) {
  if (!results.ok()) {
    ADD_FAILURE() << results.status();
    return {};
  }
  return (*results)[output].shape();
}

}  // namespace reprise

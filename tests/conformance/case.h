// A case of the ONNX backend suite: a folder with model.onnx and test_data_set_<n>/ folders of
// serialised tensors.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/tensor.h"

namespace reprise {

struct DataSet {
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};

absl::StatusOr<std::vector<DataSet>> ReadDataSets(const std::string& case_folder);

// Returns a declared tensor: the suite keeps bfloat16 as the bits, typed uint16: the same bytes
// under the declared dtype.
Tensor AsDeclared(const Tensor& tensor, DType dtype);

// How far a float may be off: the sum of the three.
struct Tolerance {
  double relative = 1e-3;    // scales with the expected element
  double of_largest = 1e-5;  // scales with the largest expected element
  double absolute = 0;
};

// OK when dtype and shape agree and the elements do (integers equal); otherwise the first
// difference.
absl::Status CompareTensors(const Tensor& actual, const Tensor& expected,
                            const Tolerance& tolerance);

}  // namespace reprise

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

// OK when dtype and shape agree and the elements do: integers equal, floats within 1e-3 relative
// plus 1e-5 of the largest expected value. The first difference otherwise.
absl::Status CompareTensors(const Tensor& actual, const Tensor& expected);

}  // namespace reprise

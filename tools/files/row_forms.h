// RowForms: forms of fixed size for nodes that find rows of data: TopK over a computed k, and
// NonMaxSuppression.
//
//   TopK(x, k)             is   all of x in its order, and the mask: the first k of them
//   NonMaxSuppression(...)  is   its rounds one after another: the best box that is left, and those
//                               that it covers are left out; the mask: a round has found one
//
// The nodes that read the rows go on with all of them, where each of their rows depends on its own
// row alone: columns, lookups by rows, elementwise operators, products with constants. It ends in
// reductions, which leave the rows out that are not there, or in outputs, which then hold zeros in
// their place and have the mask as a further output.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/onnx/file/onnx_proto.h"

namespace reprise::cli {

struct RowFormOptions {
  bool allow_output_change = false;
  // The most boxes of a class in a picture; 0: as many as the model says, where that is a constant.
  int64_t most_boxes = 0;
  // Returns the rank of a value whose shape does not depend on data.
  std::function<absl::StatusOr<int>(const std::string& value)> rank;
};

// An output that has all rows now, along its dim `dim`; `mask` is the output that says which are
// there.
struct MaskedOutput {
  std::string name;
  std::string mask;
  int dim = 0;
};

// Returns whether `value` depends on data of requests, and not on shapes and constants alone.
bool HangsOnData(const onnx::GraphProto& graph, const std::string& value);

// Puts the static form of the node whose first result is `value` into `model`, which is unchanged
// where that cannot be done. UNIMPLEMENTED names the node that reads the rows otherwise, or the
// unknown value; FAILED_PRECONDITION where an output changes and that is not allowed.
absl::StatusOr<std::vector<MaskedOutput>> ApplyRowForm(const std::string& value,
                                                       const RowFormOptions& options,
                                                       onnx::ModelProto& model);

}  // namespace reprise::cli

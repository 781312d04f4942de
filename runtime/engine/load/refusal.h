// ExplainRefusal: all reasons why a model file cannot run, once it is known that it cannot.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/onnx/model_io.h"

namespace reprise {

// Returns all reasons. `refusal`: the error that the load of `path` at `ranks` ended with, the
// first that it met. Looks for the others: ops, forms and dtypes that we lack, node by node, and
// shapes that depend on data. Returns `refusal` itself where it is about something else.
// ReasonsOf() takes the result apart.
absl::Status ExplainRefusal(const std::string& path, const InputRanks& ranks,
                            const absl::Status& refusal);

}  // namespace reprise

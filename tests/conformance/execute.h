// Ways to run an imported model on concrete inputs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/onnx/importer.h"

namespace reprise {

// `device` is "rows": the op rows one after another, no specialisation, no passes; or the name of a
// device: the whole walk of a capture, then one replay. `inputs` in the order of model.inputs.
absl::StatusOr<std::vector<Tensor>> Execute(const ImportedModel& model,
                                            const std::vector<Tensor>& inputs,
                                            const std::string& device);

}  // namespace reprise

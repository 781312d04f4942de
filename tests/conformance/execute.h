// Ways to run an imported model on concrete inputs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/onnx/importer.h"

namespace reprise {

// `device` says how: "rows" evaluates the op rows one after another; "passes" evaluates the graph
// after load passes, specialisation and capture passes; "reference" and "cpu" compile a recipe for
// that device and replay it once on two threads, "baseline" for a CPU of which nothing but its
// architecture is known. `inputs` in the order of model.inputs.
absl::StatusOr<std::vector<Tensor>> Execute(const ImportedModel& model,
                                            const std::vector<Tensor>& inputs,
                                            const std::string& device);

}  // namespace reprise

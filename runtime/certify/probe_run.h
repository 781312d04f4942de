// RunOnce: the model that a probe measures, run once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/certify/numbers.h"
#include "runtime/certify/probe.h"

namespace reprise {

// Returns the outputs of `runner` for `inputs`. INTERNAL where they are not `outputs` in number;
// else the runner's errors.
absl::StatusOr<std::vector<Tensor>> RunOnce(const ProbeRunner& runner,
                                            const std::vector<Numbers>& inputs, size_t outputs);

// "output 'logits'", or "value 'scores', which answers show coarsely,".
std::string OutputWords(const ProbeOptions& options, const std::string& output);

}  // namespace reprise

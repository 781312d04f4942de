// MakeAxes: the axes that classes of symbols are: which of them is the batch, and what they are
// called.
//
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/graph/shape.h"
#include "runtime/passes/read/axes.h"

namespace reprise {

// Adds an axis to `result` for each of `classes`, and the representatives of their symbols.
// `inputs`: the dims of the model's inputs; `symbols`: all that are not derived, in their order.
void MakeAxes(absl::Span<const std::vector<Dim>> inputs, absl::Span<const std::string> symbols,
              std::vector<std::vector<std::string>> classes, MergedSymbols& result);

}  // namespace reprise

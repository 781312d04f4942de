// Elementwise ops over integers and truth, as terms.
#pragma once

#include <optional>

#include "runtime/passes/read/element_rules.h"

namespace reprise {

// Returns the result for `arguments`, one element an operand (0 for one that is left out), or
// nullopt where no normal form says it.
std::optional<Size> ScalarResult(const ElementContext& context, absl::Span<const Size> arguments);

}  // namespace reprise

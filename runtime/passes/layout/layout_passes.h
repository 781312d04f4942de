// The passes that choose where the channels of planes lie.
//
// One factory each; pipeline.cc holds the order in which they run. A rewrite fires only where it is
// known to keep the answers: shapes, dtypes, the values of constants and the number of uses are
// checked, and near matches of the pattern stay as they are. On a symbolic graph, rewrites that
// need shapes do nothing.
#pragma once

#include <memory>

#include "runtime/passes/kit/pass.h"

namespace reprise {

// Convolutions of bytes, and sums and pools after them, have their channels last.
std::unique_ptr<Pass> ChannelsLast();
// Float planes have their channels after the batch, or last, whichever takes less in all.
std::unique_ptr<Pass> ChooseLayouts();

}  // namespace reprise

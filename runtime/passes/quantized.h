// The passes over chains of quantised nodes.
#pragma once

#include <memory>

#include "runtime/passes/pass.h"

namespace reprise {

// Steps of bytes behind integer products join them, and those behind a sum of bytes: what such
// nodes hand on is bytes.
std::unique_ptr<Pass> FuseRequantize();
// Convolutions of bytes, and sums and pools behind them, have their channels last.
std::unique_ptr<Pass> ChannelsLast();

}  // namespace reprise

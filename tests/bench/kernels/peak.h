// The measured rate of fused multiply-adds of this machine: what a kernel is compared with.
#pragma once

#include "runtime/base/cpu_info.h"

namespace reprise::cpu {

// Best of several runs of independent multiply-adds in registers, one thread, in 1e9 operations a
// second (a multiply-add is two).
double PeakGflops(Isa isa);

}  // namespace reprise::cpu

// A CPU of an architecture that has no file of its own: no feature is detected.
#if !defined(__x86_64__)

#include "runtime/base/cpu/cpu_info.h"

namespace reprise {

Isa DetectIsa() { return Isa::kBaseline; }

bool ConvertsBesideProducts() { return false; }

std::string CpuModelName() { return "unknown"; }

}  // namespace reprise

#endif

// The vector tiers that this build has code for: all, or with CMake's REPRISE_TIERS=native the
// baseline and the widest one of the machine that it was built on.
//
// Threads: pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/cpu/isa.h"

namespace reprise {

// Returns whether kernels for exactly the vectors of `isa` were compiled; products of bytes, of
// bfloat16 and of tiles come with AVX2 and AVX-512.
bool HasCodeFor(Isa isa);

// Returns `isa`, or the baseline where its vectors were not compiled.
Isa WithinCompiled(Isa isa);

// Returns why --max-isa may not be `name`, one of kIsas: its tier was not compiled; else "".
std::string WhyNotIsa(absl::string_view name);

}  // namespace reprise

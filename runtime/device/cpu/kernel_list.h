// The ops that the fast kernels of this folder know, for lists of them.
#pragma once

#include "absl/strings/string_view.h"

namespace reprise {

// Returns whether a family has a plan for the op, which may still find no kernel for some of its
// forms.
bool HasCpuKernels(absl::string_view op);

}  // namespace reprise

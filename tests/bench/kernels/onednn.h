// oneDNN's product with weights packed in its own layout, to compare ours with: no part of the
// daemon. Without the library (libdnnl-dev of Debian) there is nothing to compare with.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

// A call computes c[m, n] = a[m, k] b[k, n] in float32 on the calling thread; all are row-major and
// outlive the function, b is packed at once. Null where the library is missing. The first call of
// a process caps the library at `isa`.
std::function<void()> OneDnnProduct(Isa isa, int64_t m, int64_t k, int64_t n, float* a,
                                    const float* b, float* c);

}  // namespace reprise::cpu

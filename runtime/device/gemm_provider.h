// The libraries that multiply matrices on the cpu device: the values of --gemm-provider.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace reprise {

enum class GemmProvider : uint8_t {
  kAuto,      // our kernels, and OpenBLAS where ours cannot or timing has shown it to be faster
  kOwn,       // our kernels, then the reference
  kOpenBlas,  // OpenBLAS wherever it can
};
inline constexpr absl::string_view kGemmProviderNames[] = {"auto", "own", "openblas"};

}  // namespace reprise

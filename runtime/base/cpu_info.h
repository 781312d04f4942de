// The CPU resources of this process: the instruction sets, and the share of the CPU it was given.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace reprise {

// Instruction-set tiers that kernels are written for, each including those before it. `kBaseline`
// is x86-64 without any extension. `kAvx2Vnni`, AVX2 with products of bytes (AVX-VNNI), is the one
// that a higher tier need not include: CPUs with AVX-512 may lack it.
enum class Isa { kBaseline, kAvx2, kAvx2Vnni, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };
inline constexpr Isa kHighestIsa = Isa::kAmx;

// The values of --max-isa, by Isa.
inline constexpr std::array<absl::string_view, static_cast<size_t>(kHighestIsa) + 1> kIsaNames = {
    "baseline", "avx2", "avx2_vnni", "avx512", "avx512_vnni", "avx512_bf16", "amx"};

absl::string_view IsaName(Isa isa);
// The tier whose code for floats `isa` runs: products of bytes and of bfloat16 are all that others
// add.
constexpr Isa FloatTier(Isa isa) {
  return isa >= Isa::kAvx512 ? Isa::kAvx512 : isa >= Isa::kAvx2 ? Isa::kAvx2 : isa;
}
std::optional<Isa> ParseIsa(absl::string_view name);

// The highest tier that CPU and operating system support. The same all the time: the first call
// asks the system for what a process has to ask for.
Isa DetectIsa();

// The highest tier that CPU and operating system support and that is not above `cap`.
Isa UsableIsa(Isa cap);

// Vendor and model as CPUID gives them: part of a device fingerprint.
std::string CpuModelName();

// Whether vectors are converted by other units than those that multiply: on AMD. Intel's converting
// takes slots from multiplications.
bool ConvertsBesideProducts();

// Bytes of a core's first-level cache of data and of its second-level cache; 0 where the system
// does not say.
int64_t FirstLevelCacheBytes();
int64_t SecondLevelCacheBytes();

// CPUs this process may keep busy: the affinity mask, cut to the cgroup's quota (v2 and v1,
// rounded up), at least 1.
int AvailableCpus();

}  // namespace reprise

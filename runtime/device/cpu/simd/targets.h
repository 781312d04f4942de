// The Highway targets that the kernels of this folder are compiled for: one for each tier of Isa
// that matters to f32 code. A kernel file is included once for each target by hwy/foreach_target.h,
// each time inside a namespace and a function attribute of its own, so that no file needs ISA flags
// and no inline function of one tier can be merged with the same one of another.
//
// Highway's own dispatch is not used: it is global and chooses from CPUID alone, whereas a device
// may be capped by --max-isa and a test runs every tier. Instead each family has a function
// `const XKernels& XKernelsFor(Isa)`, made by REPRISE_CHOOSE_TARGET.
#pragma once

#include "runtime/base/cpu/cpu_info.h"

// The tiers that are compiled next to the baseline: all that the architecture has, or with CMake's
// REPRISE_TIERS=native the one that REPRISE_NATIVE_TIER names (2: AVX2, 512: AVX-512, 0: none).
// UsableIsa() returns no other.
#if !defined(__x86_64__)
#define REPRISE_WITH_AVX2 0
#define REPRISE_WITH_AVX512 0
#define HWY_COMPILE_ONLY_SCALAR
#elif defined(REPRISE_NATIVE_TIER)
#define REPRISE_WITH_AVX2 (REPRISE_NATIVE_TIER == 2)
#define REPRISE_WITH_AVX512 (REPRISE_NATIVE_TIER == 512)
#define HWY_COMPILE_ALL_ATTAINABLE
#else
#define REPRISE_WITH_AVX2 1
#define REPRISE_WITH_AVX512 1
#define HWY_COMPILE_ALL_ATTAINABLE
#endif

// The baseline is one lane at a time with every compiler: it has to be right, not fast.
#define HWY_BROKEN_EMU128 1
#define HWY_DISABLED_TARGETS                                                 \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | (REPRISE_WITH_AVX2 ? 0 : HWY_AVX2) | \
   (REPRISE_WITH_AVX512 ? 0 : HWY_AVX3))

// The table `name` of the tier that `isa` allows: SCALAR is plain C++, AVX3 is AVX-512 F, BW, DQ,
// VL.
#if REPRISE_WITH_AVX2 && REPRISE_WITH_AVX512
#define REPRISE_CHOOSE_TARGET(isa, name)                    \
  ((isa).Has(::reprise::CpuFeature::kAvx512) ? N_AVX3::name \
   : (isa).Has(::reprise::CpuFeature::kAvx2) ? N_AVX2::name \
                                             : N_SCALAR::name)
#elif REPRISE_WITH_AVX512
#define REPRISE_CHOOSE_TARGET(isa, name) \
  ((isa).Has(::reprise::CpuFeature::kAvx512) ? N_AVX3::name : N_SCALAR::name)
#elif REPRISE_WITH_AVX2
#define REPRISE_CHOOSE_TARGET(isa, name) \
  ((isa).Has(::reprise::CpuFeature::kAvx2) ? N_AVX2::name : N_SCALAR::name)
#else
#define REPRISE_CHOOSE_TARGET(isa, name) ((void)(isa), N_SCALAR::name)
#endif

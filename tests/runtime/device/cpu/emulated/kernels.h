// Kernels of the tile unit (AMX) that run on every CPU with AVX-512 and its products of bytes: they
// are the tree's own sources, compiled with an emulation in the unit's place (tile_unit.h).
//
// Each returns null for sets of features without the unit.
#pragma once

#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_bf16.h"
#include "runtime/device/cpu/gemm/gemm_block_digits.h"
#include "runtime/device/cpu/int8/gemm_u8s8.h"

namespace reprise::cpu {

// Returns the set of features for which the functions below return kernels: all that the emulation
// stands for; without any where this CPU or build lacks the vectors.
inline Isa EmulatedIsa() {
  return UsableIsa(Isa::kAvx512Vnni) == Isa::kAvx512Vnni ? Isa::kAmx : Isa::kBaseline;
}

const GemmKernels* EmulatedGemmKernelsFor(Isa isa);
const Bf16Kernels* EmulatedBf16KernelsFor(Isa isa);
const BlockDigitKernels* EmulatedBlockDigitKernelsFor(Isa isa, bool rounded);
const U8S8Kernels* EmulatedU8S8KernelsFor(Isa isa);
const AttentionKernels* EmulatedAttentionKernelsFor(Isa isa);
const AttentionKernels* EmulatedRoundingAttentionKernelsFor(Isa isa);

}  // namespace reprise::cpu

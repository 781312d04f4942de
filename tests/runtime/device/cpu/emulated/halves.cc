// Products of bfloat16 by the emulated unit, see kernels.h.
#define REPRISE_TILE_UNIT ::reprise::cpu::EmulatedTileUnit
#define TileBf16KernelsFor EmulatedBf16KernelsFor
#include "tests/runtime/device/cpu/emulated/tile_unit.h"
// After the names.
#include "runtime/device/cpu/gemm/gemm_bf16_amx.cc"

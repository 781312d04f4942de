// Products of float32 by the emulated unit, see kernels.h.
#define REPRISE_TILE_UNIT ::reprise::cpu::EmulatedTileUnit
#define TileGemmKernelsFor EmulatedGemmKernelsFor
#include "tests/runtime/device/cpu/emulated/tile_unit.h"
// After the names.
#include "runtime/device/cpu/gemm/gemm_amx.cc"

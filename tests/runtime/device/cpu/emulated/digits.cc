// Products of digits by the emulated unit, see kernels.h.
#define REPRISE_TILE_UNIT ::reprise::cpu::EmulatedTileUnit
#define TileBlockDigitKernelsFor EmulatedBlockDigitKernelsFor
#include "tests/runtime/device/cpu/emulated/tile_unit.h"
// After the names.
#include "runtime/device/cpu/gemm/gemm_block_digits_amx.cc"

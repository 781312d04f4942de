// Products of bytes by the emulated unit, see kernels.h.
#define REPRISE_TILE_UNIT ::reprise::cpu::EmulatedTileUnit
#define TileU8S8KernelsFor EmulatedU8S8KernelsFor
#include "tests/runtime/device/cpu/emulated/tile_unit.h"
// After the names.
#include "runtime/device/cpu/int8/gemm_u8s8_amx.cc"

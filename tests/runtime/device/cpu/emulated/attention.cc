// Attention by the emulated unit, see kernels.h.
#define REPRISE_TILE_UNIT ::reprise::cpu::EmulatedTileUnit
#define TileAttentionKernelsFor EmulatedAttentionKernelsFor
#define RoundingAttentionKernelsFor EmulatedRoundingAttentionKernelsFor
#define SuitsTileAttention SuitsEmulatedAttention
#include "tests/runtime/device/cpu/emulated/tile_unit.h"
// After the names.
#include "runtime/device/cpu/attention/attention_amx.cc"

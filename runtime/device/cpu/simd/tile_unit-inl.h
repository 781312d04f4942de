// The parts that all kernels of the tile unit (AMX) share: its instructions, its configuration, and
// floats as sums of bfloat16 numbers. This is included inside a kernel file after math-inl.h;
// AVX-512 only.
//
// The unit multiplies bytes, and sums in int32; or it multiplies bfloat16, 8 significant bits, and
// sums in float32. A float has 24 bits, so it is the exact sum of three such numbers. For two
// floats the six largest of nine products are taken; the others would add less than 2^-22 of a
// product, with no fixed sign. Magnitudes below about 1e-33 lose digits, because the unit takes
// their smallest parts for 0.
#if defined(REPRISE_CPU_TILE_UNIT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_TILE_UNIT_INL_H_
#undef REPRISE_CPU_TILE_UNIT_INL_H_
#else
#define REPRISE_CPU_TILE_UNIT_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using Bits = hn::RebindToUnsigned<F32>;
using VBits = hn::Vec<Bits>;

// The operands of one instruction: 16 rows of A and 16 columns of B, 32 deep, a kilobyte each. A
// lane of 32 bits holds two numbers that are half a depth apart, in A and in B alike.
constexpr int64_t kRowsOfTile = 16;
constexpr int64_t kDepth = 32;
constexpr int64_t kTileBytes = 1024;
constexpr int kParts = 3;  // bfloat16 numbers of a float

// The configuration of the unit's eight tiles: all have 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// The unit's instructions; tiles are named by their numbers.
struct TileUnit {
  static HWY_INLINE void Configure(const TileConfig& config) {
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  static HWY_INLINE void Release() { asm volatile("tilerelease"); }
  // Rows lie `stride` bytes apart.
  template <int kTile>
  static HWY_INLINE void Load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static HWY_INLINE void Store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static HWY_INLINE void Zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  // Adds A times B to sums: of bfloat16, and of bytes with the signs named.
  template <int kSums, int kA, int kB>
  static HWY_INLINE void MultiplyHalves() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
  }
  template <bool kASigned, bool kBSigned, int kSums, int kA, int kB>
  static HWY_INLINE void MultiplyBytes() {
    static_assert(kASigned || kBSigned);
    if constexpr (kASigned && kBSigned) {
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
    } else if constexpr (kASigned) {
      asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
    } else {
      asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
    }
  }
};

// Kernels name the unit so. Tests compile them with an emulation in its place, which runs on other
// CPUs (tests/runtime/device/cpu/emulated).
#ifndef REPRISE_TILE_UNIT
#define REPRISE_TILE_UNIT TileUnit
#endif
using Unit = REPRISE_TILE_UNIT;

// The indices of bytes within 128 bits: the upper half of each lane, twice.
HWY_ALIGN constexpr uint8_t kUpperHalves[16] = {2,  3,  2,  3,  6,  7,  6,  7,
                                                10, 11, 10, 11, 14, 15, 14, 15};

// Returns the upper halves of two vectors of floats, whatever the lower ones hold: the upper
// halves of `low` replace the lower ones of `high`, in one instruction.
HWY_INLINE VBits Pair(VF low, VF high) {
  const hn::Repartition<uint8_t, F32> d8;
  const Bits du;
  return VBits{_mm512_mask_shuffle_epi8(hn::BitCast(du, high).raw, 0x3333333333333333ull,
                                        hn::BitCast(du, low).raw,
                                        hn::LoadDup128(d8, kUpperHalves).raw)};
}

// x = parts[0] + parts[1] + parts[2], except for numbers so small that the unit takes them for 0.
struct Split {
  VF parts[kParts];
};

// Splits a finite x. For an infinity or a NaN at least one part is NaN, so that all sums with it
// are NaN too.
HWY_INLINE Split SplitFinite(VF x) {
  const F32 d;
  const Bits du;
  const VBits mask = hn::Set(du, 0xFFFF0000u);
  const VF first = hn::BitCast(d, hn::And(hn::BitCast(du, x), mask));
  const VF rest = hn::Sub(x, first);
  const VBits rounded = hn::Add(hn::BitCast(du, rest), hn::Set(du, 0x8000u));
  const VF second = hn::BitCast(d, hn::And(rounded, mask));
  return {first, second, hn::Sub(rest, second)};
}

// Splits any x. An infinity becomes the last part, which is multiplied with the first part of the
// other side alone: the others may be 0 or of the other sign, and would make it NaN.
HWY_INLINE Split SplitFloat(VF x) {
  const F32 d;
  const Bits du;
  const VBits mask = hn::Set(du, 0xFFFF0000u);
  const auto infinite = hn::IsInf(x);
  const VF upper = hn::BitCast(d, hn::And(hn::BitCast(du, x), mask));
  const VF first = hn::IfThenZeroElse(infinite, upper);
  const VF rest = hn::Sub(x, first);
  const VBits rounded = hn::Add(hn::BitCast(du, rest), hn::Set(du, 0x8000u));
  const VF second = hn::IfThenZeroElse(infinite, hn::BitCast(d, hn::And(rounded, mask)));
  return {first, second, hn::Sub(rest, second)};
}

// Loads the first `count` of a vector's floats, at most all of them, and zeros.
HWY_INLINE VF LoadFirst(F32 d, const float* p, int64_t count) {
  return count >= static_cast<int64_t>(HWY_LANES(float)) ? hn::LoadU(d, p)
         : count > 0                                     ? LoadPart(d, p, count)
                                                         : hn::Zero(d);
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#endif  // include guard

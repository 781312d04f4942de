// The panels of gemm_block_bf16.cc: where things lie, how their words become pairs of bfloat16, and
// how rows of A do. Included inside a kernel file after hwy/highway.h, once for each Highway
// target.
#if defined(REPRISE_CPU_BLOCK_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_BLOCK_PAIRS_INL_H_
#undef REPRISE_CPU_BLOCK_PAIRS_INL_H_
#else
#define REPRISE_CPU_BLOCK_PAIRS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/bf16-inl.h"
#include "runtime/device/cpu/gemm/gemm_blocks.h"
#include "runtime/device/cpu/gemm/gemm_stretch-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kWordBytes = kBf16Panel * int64_t{sizeof(uint32_t)};  // one word per column
// Words are asked for this many bytes ahead, into the L1 and the L2 cache.
constexpr int64_t kNearBytes = 4096;
constexpr int64_t kFarAheadBytes = 16384;

// Prefetches words after the ones at `from`. (No lambda: compilers drop calls that do nothing
// else.)
#define REPRISE_FETCH_BLOCK_WORDS(from)                                         \
  HWY_UNROLL(2) for (int64_t at = 0; at < kWordBytes; at += kLine) {            \
    __builtin_prefetch((from) + kNearBytes + at, /*rw=*/0, /*locality=*/3);     \
    __builtin_prefetch((from) + kFarAheadBytes + at, /*rw=*/0, /*locality=*/2); \
  }

// A panel, and the rows of A that meet it.
struct Shape {
  Shape(const BlockForm& form, int64_t depth)
      : per_word(form.PerWord()),
        middle(form.offsets && form.bits == 4 ? 0 : 1 << (form.bits - 1)),
        k(depth),
        block(form.block),
        blocks(form.Blocks(depth)),
        factor_rows(form.FactorRows()),
        words(form.block / per_word),
        last_words((depth - (blocks - 1) * form.block + per_word - 1) / per_word),
        panel_bytes(form.ColumnWords(depth) * kWordBytes),
        pairs(((blocks - 1) * words + last_words) * per_word / 2),
        row_words((pairs + kLanes - 1) / kLanes * kLanes + kLanes) {}

  int64_t WordsOf(int64_t b) const { return b + 1 < blocks ? words : last_words; }

  int64_t per_word;  // numbers
  int middle;        // what is taken off each number
  int64_t k, block, blocks;
  int64_t factor_rows;  // 2: a factor is followed by an offset
  int64_t words, last_words;
  int64_t panel_bytes;
  int64_t pairs;      // pairs of numbers of a column, and of elements of a row
  int64_t row_words;  // words from a row of A to the next: a line more, so that rows share no set
};

int64_t BlockPackedBytes(int64_t k, int64_t n, const BlockForm& form) {
  return (n + kBf16Panel - 1) / kBf16Panel * Shape(form, k).panel_bytes;
}

// Numbers of 4 bits as bfloat16, less `middle`, twice: a lookup takes five bits of an index.
constexpr std::array<uint16_t, 32> NibbleTable(int middle) {
  std::array<uint16_t, 32> table = {};
  for (int i = 0; i < 32; ++i) {
    const auto number = static_cast<float>(i % 16 - middle);
    table[static_cast<size_t>(i)] = static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16);
  }
  return table;
}
alignas(64) constexpr std::array<uint16_t, 32> kFromMiddle = NibbleTable(8);
alignas(64) constexpr std::array<uint16_t, 32> kFromZero = NibbleTable(0);

HWY_INLINE VU TableOf(const Shape& shape) {
  return VU{_mm512_load_si512(shape.middle == 0 ? kFromZero.data() : kFromMiddle.data())};
}

// Returns numbers `step` of the lower and of the upper half of each word as a pair: of 4 bits
// number i is paired with i + 4, of 8 bits with i + 2.
template <int kBits, int kStep>
HWY_INLINE VU PairsOf(VU words, VU table) {
  const U32 du;
  const VU shifted = hn::ShiftRight<kStep * kBits>(words);
  if constexpr (kBits == 4) return VU{_mm512_permutexvar_epi16(shifted.raw, table.raw)};
  // A byte in the lowest digits of 2^23 is a float that much larger, without a conversion.
  const F32 d;
  constexpr float kTwo23 = 1 << 23;
  const VU large = hn::BitCast(du, hn::Set(d, kTwo23)), byte = hn::Set(du, 0xFFu);
  const VF middle = hn::Set(d, kTwo23 + 128);
  constexpr int kAndOr = 0xEA;
  const auto number = [&](VU word) HWY_ATTR {
    const VU bits = {_mm512_ternarylogic_epi32(word.raw, byte.raw, large.raw, kAndOr)};
    return hn::BitCast(du, hn::Sub(hn::BitCast(d, bits), middle));
  };
  // Numbers have eight digits, so that the lower halves are 0.
  return hn::Or(hn::ShiftRight<16>(number(shifted)), number(hn::ShiftRight<16>(shifted)));
}

// Calls `take(pairs of both vectors)` for all pairs of the words at `from`.
template <int kBits, class Take>
HWY_INLINE void ForPairs(const char* from, VU table, const Take& take) {
  const U32 du;
  VU words[kBf16Vectors];
  HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
    words[v] = hn::LoadU(du, reinterpret_cast<const uint32_t*>(from) + v * kLanes);
  }
  const auto step = [&]<int kStep>(std::integral_constant<int, kStep>) HWY_ATTR {
    VU pairs[kBf16Vectors];
    HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
      pairs[v] = PairsOf<kBits, kStep>(words[v], table);
    }
    take(pairs);
  };
  step(std::integral_constant<int, 0>());
  step(std::integral_constant<int, 1>());
  if constexpr (kBits == 4) {
    step(std::integral_constant<int, 2>());
    step(std::integral_constant<int, 3>());
  }
}

// Unpacks all numbers of a panel, pair by pair.
template <int kBits>
void UnpackPanel(const char* HWY_RESTRICT from, const Shape& shape, uint32_t* HWY_RESTRICT to) {
  const U32 du;
  const VU table = TableOf(shape);
  for (int64_t b = 0; b < shape.blocks; ++b) {
    from += shape.factor_rows * kWordBytes;
    for (int64_t word = shape.WordsOf(b); word > 0; --word, from += kWordBytes) {
      REPRISE_FETCH_BLOCK_WORDS(from)
      ForPairs<kBits>(from, table, [&](const VU(&pairs)[kBf16Vectors]) HWY_ATTR {
        HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
          hn::Store(pairs[v], du, to + v * kLanes);
        }
        to += kBf16Panel;
      });
    }
  }
}

// Returns where element `half` of pair `word` lies among the elements of a row.
template <int kBits>
constexpr int ElementOf(int word, int half) {
  constexpr int kPairs = kBits == 4 ? 4 : 2;  // pairs in a word of numbers
  return word / kPairs * 2 * kPairs + word % kPairs + half * kPairs;
}
template <int kBits>
constexpr std::array<uint16_t, 32> PairOrder() {
  std::array<uint16_t, 32> order = {};
  for (int i = 0; i < 32; ++i) {
    order[static_cast<size_t>(i)] = static_cast<uint16_t>(ElementOf<kBits>(i / 2, i % 2));
  }
  return order;
}
template <int kBits>
alignas(64) constexpr std::array<uint16_t, 32> kPairOrder = PairOrder<kBits>();

// Rounds a row of A in pairs, with zeros after its end; and the sums of its blocks, where `sums` is
// not null.
template <int kBits>
void RoundRowOfBlocks(const float* HWY_RESTRICT from, const Shape& shape, float* HWY_RESTRICT to,
                      float* HWY_RESTRICT sums) {
  const F32 d;
  const U32 du;
  const auto load = [&](int64_t i) HWY_ATTR {
    if (i + kLanes <= shape.k) return hn::LoadU(d, from + i);
    return i < shape.k ? LoadPart(d, from + i, shape.k - i) : hn::Zero(d);
  };
  const VU order = VU{_mm512_load_si512(kPairOrder<kBits>.data())};
  for (int64_t word = 0; word < shape.row_words; word += kLanes) {
    const VU both = hn::BitCast(du, RoundPair(load(2 * word), load(2 * word + kLanes)));
    hn::Store(hn::BitCast(d, VU{_mm512_permutexvar_epi16(order.raw, both.raw)}), d, to + word);
  }
  if (sums == nullptr) return;
  for (int64_t b = 0; b < shape.blocks; ++b) {
    const float* at = to + b * shape.block / 2;
    VF sum = hn::Zero(d);
    for (int64_t left = shape.WordsOf(b) * shape.per_word / 2; left > 0; left -= kLanes) {
      const VU pairs = hn::BitCast(du, left < kLanes ? LoadPart(d, at, left) : hn::LoadU(d, at));
      sum = hn::Add(sum, hn::BitCast(d, hn::ShiftLeft<16>(pairs)));
      sum = hn::Add(sum, hn::BitCast(d, hn::And(pairs, hn::Set(du, 0xFFFF0000u))));
      at += kLanes;
    }
    sums[b] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

// Rounds the weights of a panel, as gemm_bf16.h packs them.
template <int kBits>
void WidenPanel(const char* HWY_RESTRICT from, const Shape& shape, uint32_t* HWY_RESTRICT to) {
  const F32 d;
  const U32 du;
  const hn::RebindToSigned<F32> d32;
  const VU mask = hn::Set(du, (1u << kBits) - 1);
  const VF middle = hn::Set(d, static_cast<float>(shape.middle));
  uint32_t* const end = to + PanelWords(shape.k);
  for (int64_t b = 0; b < shape.blocks; ++b) {
    const auto* const factors = reinterpret_cast<const float*>(from);
    from += shape.factor_rows * kWordBytes;
    VF factor[kBf16Vectors], offset[kBf16Vectors];
    HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
      factor[v] = hn::LoadU(d, factors + v * kLanes);
      offset[v] =
          shape.factor_rows == 2 ? hn::LoadU(d, factors + kBf16Panel + v * kLanes) : hn::Zero(d);
    }
    for (int64_t word = shape.WordsOf(b); word > 0; --word, from += kWordBytes) {
      VU words[kBf16Vectors];
      HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
        words[v] = hn::LoadU(du, reinterpret_cast<const uint32_t*>(from) + v * kLanes);
      }
      for (int64_t pair = shape.per_word / 2; pair > 0; --pair, to += kBf16Panel) {
        HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
          const auto weight = [&](VU number) HWY_ATTR {
            const VF x = hn::ConvertTo(d, hn::BitCast(d32, hn::And(number, mask)));
            return hn::MulAdd(hn::Sub(x, middle), factor[v], offset[v]);
          };
          const VF pairs = PairLanes(weight(words[v]), weight(hn::ShiftRight<kBits>(words[v])));
          hn::Store(hn::BitCast(du, pairs), du, to + v * kLanes);
          words[v] = hn::ShiftRight<kBits>(hn::ShiftRight<kBits>(words[v]));
        }
      }
    }
  }
  std::fill(to, end, 0u);
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#endif  // include guard

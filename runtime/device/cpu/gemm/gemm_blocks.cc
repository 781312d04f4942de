// Products by weights of a few bits. A tile of rows widens the words of a panel in registers, each
// number once for all of its rows; more tiles have a stretch of the panel widened once, in a
// buffer. Memory reads for a row are an eighth of those for floats, or a fourth.
#include "runtime/device/cpu/gemm/gemm_blocks.h"

#include <cstring>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/gemm_blocks.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using D32 = hn::Rebind<int32_t, F32>;
using DU32 = hn::Rebind<uint32_t, F32>;
using VU32 = hn::Vec<DU32>;

// The rows of a tile that widens in registers: AVX2 has 16 registers, and more rows would spill.
constexpr int kTallest = HWY_TARGET == HWY_AVX3 ? kTileRows : 3;
constexpr int64_t kWordBytes = kPanel * int64_t{sizeof(uint32_t)};  // one word per column

// The second factor of a block.
enum class Second { kNone, kPoint, kOffset };

// Unpacks the weights of words, one number of each word after the other.
template <int kBits, Second kSecond>
class Numbers {
 public:
#if HWY_TARGET == HWY_AVX3
  HWY_ATTR Numbers() : table_(hn::Sub(hn::Iota(F32(), 0), hn::Set(F32(), kLess))) {}
#endif

  // Returns the weights of the lowest number of each word, which is shifted out of the words; the
  // factors of their columns lie at `factors`.
  HWY_INLINE VF Next(VU32& words, const float* factors) const {
    const F32 d;
    VF numbers = Lowest(words);
    words = hn::ShiftRight<kBits>(words);
    if constexpr (kSecond == Second::kPoint) {
      numbers = hn::Sub(numbers, hn::LoadU(d, factors + kPanel));
    }
    const VF products = hn::Mul(numbers, hn::LoadU(d, factors));
    if constexpr (kSecond != Second::kOffset) return products;
    return hn::Add(products, hn::LoadU(d, factors + kPanel));
  }

 private:
  // The zero point that all have, without points of their own.
  static constexpr float kLess = kSecond == Second::kPoint                  ? 0
                                 : kSecond == Second::kOffset && kBits == 4 ? 0
                                                                            : 1 << (kBits - 1);

  // Less the zero point that all have.
  HWY_INLINE VF Lowest(VU32 words) const {
    const F32 d;
#if HWY_TARGET == HWY_AVX3
    // A permutation looks at the lowest four bits of an index.
    if constexpr (kBits == 4) return VF{_mm512_permutexvar_ps(words.raw, table_.raw)};
#endif
    const VU32 lowest = hn::And(words, hn::Set(DU32(), (1u << kBits) - 1));
    const VF numbers = hn::ConvertTo(d, hn::BitCast(D32(), lowest));
    return kLess == 0 ? numbers : hn::Sub(numbers, hn::Set(d, kLess));
  }

#if HWY_TARGET == HWY_AVX3
  VF table_;
#endif
};

// Returns the part of panel `p` of the two or the one that a tile takes.
HWY_INLINE TileOut OutOfPanel(TileOut out, int p) {
  const int64_t columns = p * kPanel;
  out.c += columns;
  if (out.bias != nullptr) out.bias += columns;
  if (out.residual != nullptr) out.residual += columns;
  out.columns = std::min(out.columns - columns, kPanel);
  return out;
}

// Multiplies kRows rows of A by a panel, or by kPanels panels side by side: a lone row would wait
// for its own sums.
template <int kRows, int kPanels, int kBits, Second kSecond>
HWY_NOINLINE void BlockTile(const float* HWY_RESTRICT a, int64_t lda,
                            const char* HWY_RESTRICT panel, int64_t panel_bytes, int64_t block,
                            int64_t k, const TileOut& out) {
  constexpr int kPerWord = 32 / kBits;
  const F32 d;
  const DU32 du;
  const Numbers<kBits, kSecond> numbers;
  VF acc[kPanels][kRows][kVectors];
  HWY_UNROLL(2) for (int p = 0; p < kPanels; ++p) {
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) acc[p][r][v] = hn::Zero(d);
    }
  }
  // Every third row of A has a pointer; the two after it are an index away.
  const float* HWY_RESTRICT a3 = kRows > 3 ? Kept(a + 3 * lda) : nullptr;
  const float* HWY_RESTRICT a6 = kRows > 6 ? Kept(a + 6 * lda) : nullptr;
  for (int64_t left = k; left > 0; left -= block) {
    const auto* const factors = reinterpret_cast<const float*>(panel);
    panel += (kSecond == Second::kNone ? 1 : 2) * kWordBytes;
    int64_t rows = std::min(block, left);
    VU32 words[kPanels][kVectors];
    const auto load = [&]() HWY_ATTR {
      HWY_UNROLL(2) for (int p = 0; p < kPanels; ++p) {
        const char* const from = panel + p * panel_bytes;
        HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
          words[p][v] = hn::LoadU(du, reinterpret_cast<const uint32_t*>(from) + v * kLanes);
        }
        HWY_UNROLL(4) for (int64_t at = 0; at < kWordBytes; at += kLine) {
          __builtin_prefetch(from + kNarrowNear + at, /*rw=*/0, /*locality=*/3);
          __builtin_prefetch(from + kNarrowFar + at, /*rw=*/0, /*locality=*/2);
        }
      }
      panel += kWordBytes;
    };
    const auto step = [&](int u) HWY_ATTR {
      HWY_UNROLL(2) for (int p = 0; p < kPanels; ++p) {
        const float* const of_panel = factors + p * (panel_bytes / int64_t{sizeof(float)});
        VF weights[kVectors];
        HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
          weights[v] = numbers.Next(words[p][v], of_panel + v * kLanes);
        }
        HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
          const float* group = r < 3 ? a : r < 6 ? a3 : a6;
          const VF av = hn::Set(d, group[r % 3 * lda + u]);
          HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) Accumulate(acc[p][r][v], av, weights[v]);
        }
      }
    };
    const auto advance = [&](int64_t by) HWY_ATTR {
      a += by;
      if constexpr (kRows > 3) a3 += by;
      if constexpr (kRows > 6) a6 += by;
    };
    for (; rows >= kPerWord; rows -= kPerWord) {
      load();
      HWY_UNROLL(8) for (int u = 0; u < kPerWord; ++u) step(u);
      advance(kPerWord);
    }
    if (rows > 0) {
      load();
      for (int u = 0; u < rows; ++u) step(u);
      advance(rows);
    }
  }
  HWY_UNROLL(2) for (int p = 0; p < kPanels; ++p) FinishSums(acc[p], OutOfPanel(out, p));
}

using BlockTileFunction = void (*)(const float*, int64_t, const char*, int64_t, int64_t, int64_t,
                                   const TileOut&);
template <int kBits, Second kSecond, int... kRowsLessOne>
constexpr std::array<BlockTileFunction, sizeof...(kRowsLessOne)> BlockTilesOf(
    std::integer_sequence<int, kRowsLessOne...>) {
  return {BlockTile<kRowsLessOne + 1, 1, kBits, kSecond>...};
}

// Rows [begin, end) of a panel as floats; both are multiples of the numbers of a word, or the last.
template <int kBits, Second kSecond>
void Widen(const char* HWY_RESTRICT panel, int64_t block, int64_t begin, int64_t end,
           float* HWY_RESTRICT widened) {
  constexpr int64_t kPerWord = 32 / kBits;
  const F32 d;
  const DU32 du;
  const Numbers<kBits, kSecond> numbers;
  constexpr int64_t kFactorBytes = (kSecond == Second::kNone ? 1 : 2) * kWordBytes;
  const int64_t block_bytes = kFactorBytes + block / kPerWord * kWordBytes;
  for (int64_t i = begin; i < end;) {
    const char* const start = panel + i / block * block_bytes;
    const auto* const factors = reinterpret_cast<const float*>(start);
    const char* from = start + kFactorBytes + i % block / kPerWord * kWordBytes;
    const int64_t end_of_block = std::min(end, (i / block + 1) * block);
    for (; i < end_of_block; from += kWordBytes) {
      VU32 words[kVectors];
      HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
        words[v] = hn::LoadU(du, reinterpret_cast<const uint32_t*>(from) + v * kLanes);
      }
      const int64_t rows = std::min(end_of_block - i, kPerWord);
      for (int64_t u = 0; u < rows; ++u, widened += kPanel) {
        HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
          hn::Store(numbers.Next(words[v], factors + v * kLanes), d, widened + v * kLanes);
        }
      }
      i += rows;
    }
  }
}

// Rows [begin, end) of A, more than a tile has.
template <int kBits, Second kSecond>
void WidenedPanelRows(const GemmArgs& args, const BlockForm& form, const char* b, const char* next,
                      int64_t panel, int64_t begin, int64_t end) {
  HWY_ALIGN float widened[kLongestStretchBytes / sizeof(float)];
  const int64_t tiles = TilesOf(end - begin);
  const int64_t row_bytes = form.ColumnWords(args.k) * kWordBytes / args.k;
  TilesOfPanel(
      args, nullptr, panel, begin, end, kTilesOf<Panel::kPacked, kVectors>, kPanel,
      EvenStretch(args.k, StretchRows(end - begin)),
      [&](int64_t depth, int64_t depth_end) HWY_ATTR {
        Widen<kBits, kSecond>(b, form.block, depth, depth_end, widened);
        return widened;
      },
      // Each tile prefetches its share of the next panel.
      [&](int64_t depth, int64_t) -> Ahead {
        return {next + depth * row_bytes, row_bytes / tiles};
      });
}

template <int kBits, Second kSecond>
void BlockPartOf(const GemmArgs& args, const BlockForm& form, const GemmPart& part) {
  static constexpr auto kTiles =
      BlockTilesOf<kBits, kSecond>(std::make_integer_sequence<int, kTallest>());
  const auto* const packed = static_cast<const char*>(args.packed_b);
  const int64_t panel_bytes = form.ColumnWords(args.k) * kWordBytes;
  const int64_t row_block = kMaxSplitRows;
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += row_block) {
    const int64_t end = std::min(begin + row_block, part.row_end);
    for (int64_t panel = part.panel_begin, panels; panel < part.panel_end; panel += panels) {
      panels = 1;
      const char* const b = packed + panel * panel_bytes;
      if (end - begin > kTallest) {
        const int64_t next = panel + 1 == part.panel_end ? part.panel_begin : panel + 1;
        WidenedPanelRows<kBits, kSecond>(args, form, b, packed + next * panel_bytes, panel, begin,
                                         end);
        continue;
      }
      if (end - begin == 1 && panel + 2 <= part.panel_end) panels = 2;
      const BlockTileFunction tile =
          panels == 2 ? BlockTile<1, 2, kBits, kSecond> : kTiles[end - begin - 1];
      tile(args.a + begin * args.lda, args.lda, b, panel_bytes, form.block, args.k,
           TileOutOf(args, nullptr, begin, panel * kPanel, panels * kPanel));
    }
  }
}

// Calls `use` with the constants of `form`.
template <typename Use>
void WithForm(const BlockForm& form, Use use) {
  const auto with_bits = [&]<int kBits>() {
    if (form.offsets) return use.template operator()<kBits, Second::kOffset>();
    if (form.points) return use.template operator()<kBits, Second::kPoint>();
    return use.template operator()<kBits, Second::kNone>();
  };
  form.bits == 4 ? with_bits.template operator()<4>() : with_bits.template operator()<8>();
}

void BlockPart(const GemmArgs& args, const BlockForm& form, const GemmPart& part) {
  WithForm(form,
           [&]<int kBits, Second kSecond>() { BlockPartOf<kBits, kSecond>(args, form, part); });
}

void WidenPanel(const void* packed, const BlockForm& form, int64_t k, int64_t panel,
                float* floats) {
  const char* const b = static_cast<const char*>(packed) + panel * form.ColumnWords(k) * kWordBytes;
  WithForm(form, [&]<int kBits, Second kSecond>() {
    Widen<kBits, kSecond>(b, form.block, 0, k, floats);
  });
}

// Puts the words at `from` of a panel of columns, whose numbers are kept as they are.
HWY_INLINE void PutWholeWords(const uint8_t* from, int64_t row_bytes, uint32_t flipped,
                              uint32_t* to) {
  for (int64_t j = 0; j < kPanel; ++j) {
    uint32_t word;
    std::memcpy(&word, from + j * row_bytes, sizeof(word));
    to[j] = word ^ flipped;
  }
}

void PackBlocks(const BlockSource& b, const BlockForm& form, int64_t k, int64_t n, void* packed) {
  auto* to = static_cast<uint32_t*>(packed);
  const int64_t blocks = form.Blocks(k);
  const uint32_t flipped = b.offset == 0 ? 0 : kSignBits;
  const auto put_factors = [&](const float* factors, int64_t column, int64_t block) {
    float row[kPanel] = {};
    for (int64_t j = 0; j < std::min(kPanel, n - column); ++j) {
      row[j] = factors[(column + j) * blocks + block];
    }
    std::memcpy(to, row, sizeof(row));
    to += kPanel;
  };
  for (int64_t column = 0; column < n; column += kPanel) {
    const int64_t live = std::min(kPanel, n - column);
    const uint8_t* const numbers = b.numbers + column * b.row_bytes;
    for (int64_t block = 0; block < blocks; ++block) {
      put_factors(b.scales, column, block);
      if (b.points != nullptr) put_factors(b.points, column, block);
      const int64_t end = std::min(k, (block + 1) * form.block);
      for (int64_t i = block * form.block; i < end; i += form.PerWord(), to += kPanel) {
        const int64_t end_of_word = std::min(end, i + form.PerWord());
        if (live == kPanel && b.bits == form.bits && end_of_word - i == form.PerWord()) {
          PutWholeWords(numbers + i * b.bits / 8, b.row_bytes, flipped, to);
          continue;
        }
        std::fill_n(to, kPanel, 0u);
        for (int64_t j = 0; j < live; ++j) {
          to[j] = WordAt(b, form, numbers + j * b.row_bytes, i, end_of_word);
        }
      }
    }
  }
}

}  // namespace

constexpr BlockGemmKernels kBlockGemmKernels = {
    .panel_columns = kPanel, .pack = PackBlocks, .part = BlockPart, .widen = WidenPanel};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const BlockGemmKernels& BlockGemmKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kBlockGemmKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE

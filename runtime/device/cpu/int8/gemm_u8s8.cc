// Products of bytes on the vectors of a CPU: by their own instruction for it (VNNI), where there is
// one, else widened to int16, with two products summed in int32. (Summing products of bytes in
// int16 would be shorter, but saturates.)
#include "runtime/device/cpu/int8/gemm_u8s8.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/int8/gemm_u8s8.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_stretch-inl.h"
#include "runtime/device/cpu/int8/gemm_u8s8_pack-inl.h"
#include "runtime/device/cpu/int8/gemm_u8s8_sums-inl.h"
#include "runtime/device/cpu/simd/byte_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Rows of a tile of C: of the vectors of AVX2 widening needs more than products of floats do.
template <Form form>
constexpr int ByteRows(int64_t vectors) {
  const int rows = TileRows(static_cast<int>(vectors));
  return HWY_TARGET == HWY_AVX2 && form == Form::kWidened ? std::min(rows, 4) : rows;
}
// Words of A at a time. With two, the compiler does not keep all sums in AVX2 registers; with few
// tiles, lines are prefetched by twos: a row is a line and a half.
template <bool kFew>
constexpr int kUnrolledWords = HWY_TARGET == HWY_AVX2 && !kFew ? 1 : 2;
// With few tiles only prefetching this many bytes ahead hides the latency of the memory.
constexpr int64_t kNearBytes = 1536;
constexpr int64_t kFarAheadBytes = 8192;

// kRows rows of A times a panel of kVecs vectors. kFew: few tiles read it, see kFewTiles.
template <Form form, bool kASigned, int kRows, int kVecs, bool kFew>
HWY_NOINLINE void ByteTile(const uint8_t* HWY_RESTRICT a, int64_t lda,
                           const uint8_t* HWY_RESTRICT b, int64_t k, Ahead ahead,
                           const ByteTileOut& tile) {
  const U32 d;
  constexpr int64_t kRowBytesOfB = int64_t{kVecs} * kLanes * 4;
  VU acc[kRows][kVecs];
  BeginSums(tile, acc);

  // Every third row of A has a pointer; the two after it are an index away.
  const uint8_t* HWY_RESTRICT a3 = kRows > 3 ? Kept(a + 3 * lda) : nullptr;
  const uint8_t* HWY_RESTRICT a6 = kRows > 6 ? Kept(a + 6 * lda) : nullptr;
  // Row `u` of the next rows of B, times words of A.
  const auto step = [&](int u, const auto& word_of_row) HWY_ATTR {
    const uint8_t* HWY_RESTRICT row = b + u * kRowBytesOfB;
    if constexpr (kFew) {
      HWY_UNROLL(4) for (int64_t at = FirstLine(u, kRowBytesOfB); at < kRowBytesOfB; at += kLine) {
        __builtin_prefetch(row + kNearBytes + at, /*rw=*/0, /*locality=*/3);
        __builtin_prefetch(row + kFarAheadBytes + at, /*rw=*/0, /*locality=*/2);
      }
    } else {
      __builtin_prefetch(ahead.next, /*rw=*/0, /*locality=*/2);
      ahead.next += ahead.step;
    }
    VU bv[kVecs];
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      bv[v] = hn::LoadU(d, reinterpret_cast<const uint32_t*>(row) + v * kLanes);
    }
    if constexpr (form == Form::kVnni) {
#if REPRISE_HAS_VNNI
      HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
        const VU av = hn::Set(d, word_of_row(r));
        HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
          if constexpr (kASigned) {
            AccumulateBytes(acc[r][v], bv[v], av);
          } else {
            AccumulateBytes(acc[r][v], av, bv[v]);
          }
        }
      }
#endif
    } else {
      Wide<VU> wide[kVecs];
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) wide[v] = Widened<!kASigned>(bv[v]);
      HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
        const Wide<VU> of_a = Widened<kASigned>(hn::Set(d, word_of_row(r)));
        HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) AccumulateWide(acc[r][v], of_a, wide[v]);
      }
    }
  };
  const auto row_of_a = [&](int r) HWY_ATTR { return (r < 3 ? a : r < 6 ? a3 : a6) + r % 3 * lda; };
  const auto advance = [&](int64_t words) HWY_ATTR {
    a += 4 * words;
    if constexpr (kRows > 3) a3 += 4 * words;
    if constexpr (kRows > 6) a6 += 4 * words;
    b += words * kRowBytesOfB;
  };
  int64_t i = 0;
  constexpr int kWords = kUnrolledWords<kFew>;
  for (; i + 4 * kWords <= k; i += 4 * kWords) {
    HWY_UNROLL(2) for (int u = 0; u < kWords; ++u) {
      step(u, [&](int r) HWY_ATTR { return LoadWord(row_of_a(r) + 4 * u); });
    }
    advance(kWords);
  }
  for (; i + 4 <= k; i += 4) {
    step(0, [&](int r) HWY_ATTR { return LoadWord(row_of_a(r)); });
    advance(1);
  }
  if (i < k) {
    // Nothing past the last row of A is read.
    step(0, [&](int r) HWY_ATTR {
      uint32_t word = 0;
      std::memcpy(&word, row_of_a(r), static_cast<size_t>(k - i));
      return word;
    });
  }
  EndSums(tile, acc);
}

using ByteTileFunction = void (*)(const uint8_t*, int64_t, const uint8_t*, int64_t, Ahead,
                                  const ByteTileOut&);
template <Form form, bool kASigned, int kVecs, bool kFew, size_t... kRowsLessOne>
constexpr std::array<ByteTileFunction, sizeof...(kRowsLessOne)> ByteTilesOf(
    std::index_sequence<kRowsLessOne...>) {
  return {ByteTile<form, kASigned, kRowsLessOne + 1, kVecs, kFew>...};
}
// By rows - 1.
template <Form form, bool kASigned, int kVecs, bool kFew>
constexpr auto kByteTiles =
    ByteTilesOf<form, kASigned, kVecs, kFew>(std::make_index_sequence<ByteRows<form>(kVecs)>());

// Returns the tiles by rows - 1, for a panel of `vectors` vectors.
template <Form form, bool kASigned>
const ByteTileFunction* ByteTilesFor(int64_t vectors, bool few) {
  if (vectors == kVectors) {
    return few ? kByteTiles<form, kASigned, kVectors, true>.data()
               : kByteTiles<form, kASigned, kVectors, false>.data();
  }
  if (vectors == 1) return kByteTiles<form, kASigned, 1, false>.data();
  return kByteTiles<form, kASigned, (kVectors > 2 ? 2 : 1), false>.data();
}

// Computes rows [begin, end), whose terms are `rows`, of one panel at `b` with the terms `columns`;
// `next` is the panel after it.
template <Form form>
void PanelRows(const U8S8Args& args, const uint8_t* b, const uint8_t* next, int64_t panel,
               const PanelTerms& columns, const RowTerms& rows, const StepBounds* bounds,
               int64_t begin, int64_t end) {
  const auto* a = static_cast<const uint8_t*>(args.a);
  const int64_t vectors = VectorsOf(args.n - panel * kPanel);
  const int64_t row_bytes = vectors * kLanes * 4;
  const int64_t tile_rows = ByteRows<form>(vectors);
  const int64_t tiles = TilesOf(end - begin, tile_rows);
  const bool few = tiles < kFewTiles;
  const ByteTileFunction* functions = args.a_signed ? ByteTilesFor<form, true>(vectors, few)
                                                    : ByteTilesFor<form, false>(vectors, few);
  const int64_t depth_block =
      tiles == 1 ? std::max<int64_t>(args.k, 1) : 4 * StretchRows(end - begin);
  const bool split = args.k > depth_block;
  const PanelOut out(args, panel, columns, rows, bounds, begin);
  HWY_ALIGN uint32_t partial[kRowsAtATime * kPanel];
  int64_t depth = 0;
  do {
    const int64_t depth_end = split ? std::min(depth + depth_block, args.k) : args.k;
    const uint8_t* const stretch = b + depth / 4 * row_bytes;
    const uint8_t* const behind = depth_end == args.k ? next : b + depth_end / 4 * row_bytes;
    Ahead ahead = {reinterpret_cast<const char*>(behind), row_bytes / tiles};
    for (int64_t row = begin, count; row < end; row += count) {
      count = NextTileRows(end - row, tile_rows);
      ByteTileOut tile = out.At(row);
      if (split) tile.partial = partial + (row - begin) * kPanel;
      tile.out.first = depth == 0;
      tile.out.last = depth_end == args.k;
      functions[count - 1](a + row * args.lda + depth, args.lda, stretch, depth_end - depth, ahead,
                           tile);
      ahead.next += ahead.step * WordRows(depth_end - depth);
    }
    depth = depth_end;
  } while (depth < args.k);
}

template <Form form>
void Part(const U8S8Args& args, const GemmPart& part) {
  const auto* sums = static_cast<const int32_t*>(args.packed_b);
  const int64_t panels = (args.n + kPanel - 1) / kPanel;
  const auto* packed = reinterpret_cast<const uint8_t*>(sums + panels * kPanel);
  const int64_t panel_bytes = WordRows(args.k) * 4 * kPanel;
  const bool with_sums =
      AnyZeroPoint(args, part.panel_begin * kPanel, std::min(args.n, part.panel_end * kPanel));
  const std::optional<StepBounds> bounds = BoundsOf(args);
  PanelTerms terms;
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += kRowsAtATime) {
    const int64_t end = std::min(begin + kRowsAtATime, part.row_end);
    const RowBlock rows(args, begin, end, with_sums);
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      // Behind the last one of all lie the weights of another product.
      const bool again = panel + 1 == part.panel_end && end < part.row_end;
      const int64_t next = again ? part.panel_begin : panel + 1;
      TermsOfPanel(args, panel * kPanel, sums + panel * kPanel, terms);
      PanelRows<form>(args, packed + panel * panel_bytes, packed + next * panel_bytes, panel, terms,
                      rows.terms, PointerTo(bounds), begin, end);
    }
  }
}

template <Form form>
void Unpacked(const U8S8Args& args, const ByteSource& b, const GemmPart& part, void* scratch) {
  auto* const packed = static_cast<uint8_t*>(scratch);
  HWY_ALIGN int32_t sums[kPanel];
  const std::optional<StepBounds> bounds = BoundsOf(args);
  PanelTerms terms;
  for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
    const int64_t column = panel * kPanel;
    PackPanel(b, args.a_signed, args.k, args.n, panel, packed, sums);
    TermsOfPanel(args, column, sums, terms);
    const bool with_sums = AnyZeroPoint(args, column, std::min(args.n, column + kPanel));
    for (int64_t begin = part.row_begin; begin < part.row_end; begin += kRowsAtATime) {
      const int64_t end = std::min(begin + kRowsAtATime, part.row_end);
      const RowBlock rows(args, begin, end, with_sums);
      PanelRows<form>(args, packed, packed, panel, terms, rows.terms, PointerTo(bounds), begin,
                      end);
    }
  }
}

}  // namespace

template <Form form>
constexpr U8S8Kernels kKernelsOf = {
    kPanel, kLanes, ByteRows<form>(kVectors), Pack, Part<form>, Unpacked<form>, {}};
constexpr const U8S8Kernels& kU8S8Kernels = kKernelsOf<Form::kWidened>;
#if REPRISE_HAS_VNNI
constexpr const U8S8Kernels& kU8S8VnniKernels = kKernelsOf<Form::kVnni>;
#endif

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const U8S8Kernels& U8S8KernelsFor(Isa isa) {
#if REPRISE_WITH_AVX512
  if (isa.Has(CpuFeature::kAvx512Vnni)) return N_AVX3::kU8S8VnniKernels;
#endif
#if REPRISE_WITH_AVX2
  if (isa.Has(CpuFeature::kAvxVnni) && !isa.Has(CpuFeature::kAvx512))
    return N_AVX2::kU8S8VnniKernels;
#endif
  return REPRISE_CHOOSE_TARGET(isa, kU8S8Kernels);
}

GemmPart U8S8Kernels::Partition(int64_t m, int64_t n, int parts, int part) const {
  GemmKernels sizes = {};
  sizes.panel_columns = panel_columns;
  sizes.tile_rows = tile_rows;
  sizes.costs = costs;
  return sizes.Partition(m, n, /*int8=*/false, parts, part);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE

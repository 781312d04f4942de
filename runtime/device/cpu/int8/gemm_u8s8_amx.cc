// Products of bytes by the tile unit (AMX) of a CPU: sums of int32 by panels as gemm_u8s8.cc packs
// them, and its bits. Two tiles of 16 rows share each load of a panel of three tiles of columns;
// their sums stay in the unit along all of k, while the vectors finish the rows before them.
//
// An emulation of the unit shows that this is right; its speed has not been measured.
#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "runtime/device/cpu/int8/gemm_u8s8.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/int8/gemm_u8s8_amx.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/int8/gemm_u8s8_pack-inl.h"
#include "runtime/device/cpu/int8/gemm_u8s8_sums-inl.h"
#include "runtime/device/cpu/simd/tile_unit-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kStepBytes = 64;  // the bytes of each row of A for one instruction
constexpr int64_t kStepWords = kStepBytes / 4;
constexpr int64_t kRowsOfPair = 2 * kRowsOfTile;
constexpr int64_t kSumRowBytes = kPanel * int64_t{sizeof(uint32_t)};

// Sums on their way to C, a few rows at a time.
class WaitingSums {
 public:
  WaitingSums() = default;
  // Rows [row, row + rows) of a panel of `vectors` vectors; `sums` is [rows][kPanel].
  WaitingSums(const PanelOut& out, const uint32_t* sums, int64_t row, int64_t rows, int64_t vectors)
      : out_(&out), sums_(sums), row_(row), rows_(rows), vectors_(vectors) {}

  // Finishes whole groups of rows below `end`, and the others where `end` is all of them.
  void FinishTo(int64_t end) {
    end = std::min(end, rows_);
    for (; next_ + kGroup <= end; next_ += kGroup) FinishRows<kGroup>();
    if (end < rows_) return;
    for (; next_ < rows_; ++next_) FinishRows<1>();
  }
  void Finish() { FinishTo(rows_); }

 private:
  static constexpr int kGroup = 4;

  template <int kRows>
  void FinishRows() const {
    switch (vectors_) {
      case 1:
        return FinishVectors<kRows, 1>();
      case 2:
        return FinishVectors<kRows, 2>();
      default:
        return FinishVectors<kRows, kVectors>();
    }
  }
  template <int kRows, int kVecs>
  HWY_NOINLINE void FinishVectors() const {
    const U32 d;
    const ByteTileOut tile = out_->At(row_ + next_);
    VU acc[kRows][kVecs];
    BeginSums(tile, acc);
    HWY_UNROLL(4) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(3) for (int v = 0; v < kVecs; ++v) {
        acc[r][v] = hn::Add(acc[r][v], hn::Load(d, sums_ + (next_ + r) * kPanel + v * kLanes));
      }
    }
    EndSums(tile, acc);
  }

  const PanelOut* out_ = nullptr;
  const uint32_t* sums_ = nullptr;
  int64_t row_ = 0, rows_ = 0;
  int64_t vectors_ = 0;
  int64_t next_ = 0;
};

// The last bytes of rows, fewer than a step, with zeros after them.
struct LastStep {
  HWY_ALIGN uint8_t a[kRowsAtATime][kStepBytes];
  HWY_ALIGN uint32_t b[kStepWords * kPanel];
};

// A row tile or two by a panel.
struct UnitRows {
  const uint8_t* a;
  int64_t lda;
  const uint8_t* last_a;  // LastStep::a of the first row; null: k is whole steps
  const uint8_t* b;
  const uint32_t* last_b;
  int64_t steps;  // whole ones
  uint32_t* sums;
};

// Tiles kColumn and kColumn + 3 are the sums of 16 columns, 6 is B's and 7 A's.
template <bool kASigned, int kTiles, int kColumn>
HWY_INLINE void MultiplyStepColumns(const uint8_t* a, int64_t lda, const void* b,
                                    int64_t row_bytes) {
  Unit::Load<6>(static_cast<const uint8_t*>(b) + kColumn * kStepBytes, row_bytes);
  Unit::Load<7>(a, lda);
  Unit::MultiplyBytes<kASigned, !kASigned, kColumn, 7, 6>();
  if constexpr (kTiles == 2) {
    Unit::Load<7>(a + kRowsOfTile * lda, lda);
    Unit::MultiplyBytes<kASigned, !kASigned, kColumn + 3, 7, 6>();
  }
}
template <bool kASigned, int kTiles, int kVecs>
HWY_INLINE void MultiplyStep(const uint8_t* a, int64_t lda, const void* b) {
  constexpr int64_t kRowBytesOfB = int64_t{kVecs} * kLanes * 4;
  MultiplyStepColumns<kASigned, kTiles, 0>(a, lda, b, kRowBytesOfB);
  if constexpr (kVecs > 1) {
    MultiplyStepColumns<kASigned, kTiles, 1>(a, lda, b, kRowBytesOfB);
  }
  if constexpr (kVecs > 2) {
    MultiplyStepColumns<kASigned, kTiles, 2>(a, lda, b, kRowBytesOfB);
  }
}

// Calls `use` with the number of each sum of kTiles row tiles by kVecs vectors, its row tile and
// its vector.
template <int kTiles, int kVecs, class Use>
HWY_INLINE void ForSums(const Use& use) {
  const auto of_tile = [&]<int kTile>(std::integral_constant<int, kTile>) HWY_ATTR {
    use.template operator()<3 * kTile, kTile, 0>();
    if constexpr (kVecs > 1) use.template operator()<3 * kTile + 1, kTile, 1>();
    if constexpr (kVecs > 2) use.template operator()<3 * kTile + 2, kTile, 2>();
  };
  of_tile(std::integral_constant<int, 0>());
  if constexpr (kTiles > 1) of_tile(std::integral_constant<int, 1>());
}

template <bool kASigned, int kTiles, int kVecs>
HWY_NOINLINE void MultiplyUnitRows(const UnitRows& in, WaitingSums& waiting) {
  ForSums<kTiles, kVecs>([]<int kSums, int, int>() { Unit::Zero<kSums>(); });
  const int64_t steps = in.steps + (in.last_a == nullptr ? 0 : 1);
  const uint8_t* a = in.a;
  const uint8_t* b = in.b;
  for (int64_t step = 0; step < in.steps; ++step) {
    MultiplyStep<kASigned, kTiles, kVecs>(a, in.lda, b);
    a += kStepBytes;
    b += kStepWords * kVecs * kLanes * 4;
    waiting.FinishTo(kRowsOfPair * (step + 1) / steps);
  }
  if (in.last_a != nullptr) {
    MultiplyStep<kASigned, kTiles, kVecs>(in.last_a, kStepBytes, in.last_b);
  }
  waiting.Finish();
  ForSums<kTiles, kVecs>([&]<int kSums, int kTile, int kVec>() {
    Unit::Store<kSums>(in.sums + kTile * kRowsOfTile * kPanel + kVec * kLanes, kSumRowBytes);
  });
}

template <bool kASigned, int kTiles>
void MultiplyUnitRows(const UnitRows& in, int64_t vectors, WaitingSums& waiting) {
  switch (vectors) {
    case 1:
      return MultiplyUnitRows<kASigned, kTiles, 1>(in, waiting);
    case 2:
      return MultiplyUnitRows<kASigned, kTiles, 2>(in, waiting);
    default:
      return MultiplyUnitRows<kASigned, kTiles, kVectors>(in, waiting);
  }
}

// Computes rows [begin, end), whose terms are `rows`, of one panel at `b` with the terms `columns`.
template <bool kASigned>
void UnitPanelRows(const U8S8Args& args, const uint8_t* b, int64_t panel, const PanelTerms& columns,
                   const RowTerms& rows, const StepBounds* bounds, int64_t begin, int64_t end,
                   LastStep& last) {
  const auto* const a = static_cast<const uint8_t*>(args.a);
  const int64_t vectors = VectorsOf(args.n - panel * kPanel);
  const int64_t steps = args.k / kStepBytes, rest = args.k % kStepBytes;
  if (rest > 0) {
    const auto words = static_cast<size_t>(WordRows(rest) * vectors * kLanes);
    std::memcpy(last.b, b + steps * kStepWords * vectors * kLanes * 4, words * sizeof(uint32_t));
    std::fill(last.b + words, last.b + kStepWords * vectors * kLanes, uint32_t{0});
  }
  const PanelOut out(args, panel, columns, rows, bounds, begin);
  HWY_ALIGN uint32_t sums[2][kRowsOfPair * kPanel];
  WaitingSums waiting;
  bool lower = false;  // the last tile has fewer rows
  for (int64_t row = begin, pair = 0, count; row < end; row += count, ++pair) {
    const int64_t left = end - row;
    count = left >= kRowsOfPair ? kRowsOfPair : std::min(left, kRowsOfTile);
    const UnitRows in = {.a = a + row * args.lda,
                         .lda = args.lda,
                         .last_a = rest == 0 ? nullptr : last.a[row - begin],
                         .b = b,
                         .last_b = last.b,
                         .steps = steps,
                         .sums = sums[pair % 2]};
    if (count < kRowsOfTile) {
      // Nothing past the last row of A is read.
      TileConfig config;
      for (const int of_rows : {0, 1, 2, 7}) config.rows[of_rows] = static_cast<uint8_t>(count);
      Unit::Configure(config);
      lower = true;
    }
    if (count == kRowsOfPair) {
      MultiplyUnitRows<kASigned, 2>(in, vectors, waiting);
    } else {
      MultiplyUnitRows<kASigned, 1>(in, vectors, waiting);
    }
    waiting = WaitingSums(out, sums[pair % 2], row, count, vectors);
  }
  waiting.Finish();
  if (lower) Unit::Configure(TileConfig());
}

void UnitPart(const U8S8Args& args, const GemmPart& part) {
  if (part.row_begin >= part.row_end || part.panel_begin >= part.panel_end) return;
  Unit::Configure(TileConfig());
  const auto* sums = static_cast<const int32_t*>(args.packed_b);
  const int64_t panels = (args.n + kPanel - 1) / kPanel;
  const auto* packed = reinterpret_cast<const uint8_t*>(sums + panels * kPanel);
  const int64_t panel_bytes = WordRows(args.k) * 4 * kPanel;
  const bool with_sums =
      AnyZeroPoint(args, part.panel_begin * kPanel, std::min(args.n, part.panel_end * kPanel));
  const std::optional<StepBounds> bounds = BoundsOf(args);
  const auto panel_rows = args.a_signed ? UnitPanelRows<true> : UnitPanelRows<false>;
  PanelTerms terms;
  LastStep last;
  const int64_t rest = args.k % kStepBytes;
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += kRowsAtATime) {
    const int64_t end = std::min(begin + kRowsAtATime, part.row_end);
    const RowBlock rows(args, begin, end, with_sums);
    for (int64_t row = begin; rest > 0 && row < end; ++row) {
      uint8_t* const to = last.a[row - begin];
      const auto bytes = static_cast<size_t>(rest);
      std::memcpy(to, static_cast<const uint8_t*>(args.a) + row * args.lda + args.k - rest, bytes);
      std::memset(to + bytes, 0, kStepBytes - bytes);
    }
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      TermsOfPanel(args, panel * kPanel, sums + panel * kPanel, terms);
      panel_rows(args, packed + panel * panel_bytes, panel, terms, rows.terms, PointerTo(bounds),
                 begin, end, last);
    }
  }
  Unit::Release();
}

constexpr U8S8Kernels kUnitKernels = {.panel_columns = kPanel,
                                      .column_grain = kLanes,
                                      .tile_rows = kRowsOfTile,
                                      .pack = Pack,
                                      .part = UnitPart,
                                      .unpacked = nullptr,
                                      .costs = {}};

}  // namespace

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace reprise::cpu {

const U8S8Kernels* TileU8S8KernelsFor(Isa isa) {
#if REPRISE_WITH_AVX512
  if (isa.Has(CpuFeature::kAmx)) return &N_AVX3::kUnitKernels;
#endif
  return nullptr;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE

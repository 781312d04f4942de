// Sums of products of bytes: their start values, which account for the zero points of rows and
// columns, and their epilogue. This is included inside a kernel file after hwy/highway.h, once for
// each Highway target.
#if defined(REPRISE_CPU_GEMM_U8S8_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_GEMM_U8S8_SUMS_INL_H_
#undef REPRISE_CPU_GEMM_U8S8_SUMS_INL_H_
#else
#define REPRISE_CPU_GEMM_U8S8_SUMS_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <optional>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"
#include "runtime/device/cpu/gemm/gemm_stretch-inl.h"
#include "runtime/device/cpu/int8/gemm_u8s8.h"
#include "runtime/device/cpu/int8/gemm_u8s8_finish-inl.h"
#include "runtime/device/cpu/int8/gemm_u8s8_pack-inl.h"
#include "runtime/device/cpu/int8/requantize_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kRowsAtATime = kMaxSplitRows;

// The terms that the columns of a panel add to their sums, and the factors of these sums.
struct PanelTerms {
  HWY_ALIGN uint32_t start[kPanel];   // the start values of the sums
  HWY_ALIGN uint32_t center[kPanel];  // sums of a column less its zero point
  HWY_ALIGN uint32_t zero[kPanel];    // the zero points of packed B
  HWY_ALIGN float scale[kPanel];
  float largest;  // must be within StepBounds::limit; NaN where float sums may be NaN
};
// The terms of the rows; null: there is nothing to do.
struct RowTerms {
  HWY_INLINE RowTerms From(int64_t row) const {
    return {zero == nullptr ? nullptr : zero + row, sum == nullptr ? nullptr : sum + row,
            scale == nullptr ? nullptr : scale + row};
  }
  const uint32_t* zero;
  const uint32_t* sum;
  const float* scale;
};

struct ByteTileOut {
  TileOut out;
  const PanelTerms* columns;
  RowTerms rows;
  uint32_t* partial;         // as TileOut::partial
  bool integers;             // C is of int32
  const ByteFinish* finish;  // as U8S8Args::finish
  uint8_t* bytes;            // replaces TileOut::c where C is of bytes
  const StepBounds* bounds;  // null: floats of this panel may be large, or are not bytes at once
};

// Starts the sums so that adding the products alone completes the sums less zero points.
template <int kRows, int kVecs>
HWY_INLINE void BeginSums(const ByteTileOut& tile, VU (&acc)[kRows][kVecs]) {
  const U32 d;
  if (tile.partial != nullptr && !tile.out.first) {
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        acc[r][v] = hn::Load(d, tile.partial + r * kPanel + v * kLanes);
      }
    }
    return;
  }
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    const VU start = hn::Load(d, tile.columns->start + v * kLanes);
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) acc[r][v] = start;
  }
  const auto subtract = [&](const uint32_t* of_rows, const uint32_t* of_columns) HWY_ATTR {
    if (of_rows == nullptr) return;
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      const VU column = hn::Load(d, of_columns + v * kLanes);
      HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
        acc[r][v] = hn::Sub(acc[r][v], hn::Mul(hn::Set(d, of_rows[r]), column));
      }
    }
  };
  subtract(tile.rows.zero, tile.columns->center);
  subtract(tile.rows.sum, tile.columns->zero);
}

// Returns the bias of the columns of vector `v` of a tile, of which `live` exist: 0 where there is
// no bias.
HWY_INLINE VF BiasOf(const TileOut& out, int v, int64_t live) {
  const F32 d;
  if (out.bias == nullptr || live <= 0) return hn::Zero(d);
  const float* const from = out.bias + v * kLanes;
  return live >= kLanes ? hn::LoadU(d, from) : LoadPart(d, from, live);
}

#if HWY_TARGET != HWY_SCALAR
// Finished sums as bytes, from registers.
template <int kRows, int kVecs>
HWY_INLINE void QuickBytes(const ByteTileOut& tile, const VU (&acc)[kRows][kVecs]) {
  const I32 d32;
  const F32 d;
  const QuickSteps<F32> steps(*tile.bounds);
  VF scale[kVecs], bias[kVecs];
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    scale[v] = hn::LoadU(d, tile.out.scale + v * kLanes);
    bias[v] = BiasOf(tile.out, v, tile.out.columns - v * kLanes);
  }
  HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
    hn::Vec<I32> row[kVecs];
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      const VF sum = hn::ConvertTo(d, hn::BitCast(d32, acc[r][v]));
      row[v] = steps.Steps(hn::Add(hn::Mul(sum, scale[v]), bias[v]));
    }
    steps.Store<kVecs>(row, tile.out.columns, tile.bytes + r * tile.out.ldc);
  }
}
#endif

template <int kRows, int kVecs>
HWY_INLINE void EndSums(const ByteTileOut& tile, VU (&acc)[kRows][kVecs]) {
  const U32 du;
  const I32 d32;
  const F32 d;
  if (!tile.out.last) {
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        hn::Store(acc[r][v], du, tile.partial + r * kPanel + v * kLanes);
      }
    }
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  if (tile.bounds != nullptr) return QuickBytes(tile, acc);
#endif
  VF sums[kRows][kVecs];
  HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      // Integers leave as they are, through registers of floats.
      sums[r][v] =
          tile.integers ? hn::BitCast(d, acc[r][v]) : hn::ConvertTo(d, hn::BitCast(d32, acc[r][v]));
    }
  }
  if (tile.rows.scale != nullptr) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      const VF scale = hn::Load(d, tile.columns->scale + v * kLanes);
      HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
        sums[r][v] = hn::Mul(sums[r][v], hn::Mul(hn::Set(d, tile.rows.scale[r]), scale));
      }
    }
  }
  if (tile.finish == nullptr) return FinishSums(sums, tile.out);
  HWY_ALIGN float floats[kRows * kPanel];
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    const int64_t live = std::min<int64_t>(tile.out.columns - v * kLanes, kLanes);
    const VF scale =
        tile.out.scale == nullptr ? hn::Set(d, 1.0f) : hn::LoadU(d, tile.out.scale + v * kLanes);
    const VF bias = BiasOf(tile.out, v, live);
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      hn::Store(hn::Add(hn::Mul(sums[r][v], scale), bias), d, floats + r * kPanel + v * kLanes);
    }
  }
  FinishByteTile(floats, kRows, tile.out, *tile.finish, tile.bytes);
}

// The rows of a panel as they leave for C.
class PanelOut {
 public:
  // The panel's terms are `columns`, of the rows from `begin` on `rows`.
  PanelOut(const U8S8Args& args, int64_t panel, const PanelTerms& columns, const RowTerms& rows,
           const StepBounds* bounds, int64_t begin)
      : args_(args), panel_(panel), columns_(columns), rows_(rows), begin_(begin) {
    c_ = {.c = static_cast<float*>(args.c), .ldc = args.ldc, .n = args.n};
    if (args.a_scale == nullptr) return;
    c_.bias = args.bias;
    c_.residual = args.residual;
    c_.ld_residual = args.ld_residual;
    c_.activation = args.activation;
    const bool quick = kHasQuickSteps && bounds != nullptr && args.residual == nullptr &&
                       rows.scale == nullptr && columns.largest < bounds->limit;
    if (quick) bounds_ = bounds;
  }

  // Returns a tile from row `row` on, whose sums are complete unless the caller says otherwise.
  HWY_INLINE ByteTileOut At(int64_t row) const {
    const bool integers = args_.a_scale == nullptr;
    ByteTileOut tile = {.out = TileOutOf(c_, nullptr, row, panel_ * kPanel, kPanel),
                        .columns = &columns_,
                        .rows = rows_.From(row - begin_),
                        .partial = nullptr,
                        .integers = integers,
                        .finish = integers ? nullptr : args_.finish,
                        .bytes = static_cast<uint8_t*>(args_.c) + row * args_.ldc + panel_ * kPanel,
                        .bounds = bounds_};
    if (!integers && rows_.scale == nullptr) tile.out.scale = columns_.scale;
    tile.out.first = tile.out.last = true;
    return tile;
  }

 private:
  const U8S8Args& args_;
  int64_t panel_;
  const PanelTerms& columns_;
  RowTerms rows_;
  int64_t begin_;
  GemmArgs c_;
  const StepBounds* bounds_ = nullptr;
};

// Elements [column, column + live) of `points` as they are packed, 0 past them.
HWY_INLINE VU LoadPoints(const BytePoints& points, int64_t column, int64_t live, int shift) {
  const U32 d;
  const VU shifts = hn::Set(d, static_cast<uint32_t>(shift));
  if (points.data == nullptr || points.step == 0) {
    return hn::Add(shifts, hn::Set(d, static_cast<uint32_t>(points.At(0))));
  }
  const hn::Rebind<uint8_t, U32> d8;
  const hn::Rebind<int8_t, U32> s8;
  const I32 d32;
  const auto* from = static_cast<const uint8_t*>(points.data) + column;
  alignas(64) uint8_t part[kLanes] = {};
  if (live < kLanes) {
    std::memcpy(part, from, static_cast<size_t>(live));
    from = part;
  }
  const auto bytes = hn::LoadU(d8, from);
  const auto wide = points.is_signed ? hn::PromoteTo(d32, hn::BitCast(s8, bytes))
                                     : hn::BitCast(d32, hn::PromoteTo(d, bytes));
  return hn::Add(shifts, hn::BitCast(d, wide));
}

// Fills `terms` for the columns from `column` on; `sums` are their sums before packing.
HWY_MAYBE_UNUSED void TermsOfPanel(const U8S8Args& args, int64_t column, const int32_t* sums,
                                   PanelTerms& terms) {
  const U32 d;
  const F32 df;
  const int shift = ShiftOfB(args.a_signed, args.b_signed);
  const int64_t columns = std::min(kPanel, args.n - column);
  const bool one_zero = args.a_zero.data == nullptr || args.a_zero.step == 0;
  const VU a_zero = hn::Set(d, static_cast<uint32_t>(one_zero ? args.a_zero.At(0) : 0));
  const VU k = hn::Set(d, static_cast<uint32_t>(args.k));
  // Bytes less their zero points are at most 255; sums wrap around.
  const VF largest_sum =
      hn::Set(df, std::min(static_cast<float>(args.k) * 65025.0f, 2147483648.0f));
  VF largest = hn::Zero(df);
  for (int64_t j = 0; j < columns; j += kLanes) {
    const int64_t live = std::min<int64_t>(columns - j, kLanes);
    const VU zero = LoadPoints(args.b_zero, column + j, live, shift);
    const VU original = hn::Sub(zero, hn::Set(d, static_cast<uint32_t>(shift)));
    const VU sum = hn::LoadU(d, reinterpret_cast<const uint32_t*>(sums) + j);
    const VU center = hn::Sub(sum, hn::Mul(k, original));
    hn::Store(zero, d, terms.zero + j);
    hn::Store(center, d, terms.center + j);
    hn::Store(hn::Sub(hn::Zero(d), hn::Mul(a_zero, center)), d, terms.start + j);
    if (args.a_scale == nullptr) continue;
    VF scale = args.b_scale_step == 0 ? hn::Set(df, *args.b_scale)
               : live == kLanes       ? hn::LoadU(df, args.b_scale + column + j)
                                      : LoadPart(df, args.b_scale + column + j, live);
    if (args.a_scale_step == 0) scale = hn::Mul(hn::Set(df, *args.a_scale), scale);
    hn::Store(scale, df, terms.scale + j);
    const VF bias = args.bias == nullptr ? hn::Zero(df)
                    : live == kLanes     ? hn::LoadU(df, args.bias + column + j)
                                         : LoadPart(df, args.bias + column + j, live);
    // Adds rather than takes the largest, so that NaN stays NaN.
    largest = hn::Add(largest, hn::Add(hn::Mul(hn::Abs(scale), largest_sum), hn::Abs(bias)));
  }
  terms.largest = hn::GetLane(hn::SumOfLanes(df, largest));
}

// Returns whether a zero point of B, as it is packed, is not 0 in the columns [begin, end).
HWY_MAYBE_UNUSED bool AnyZeroPoint(const U8S8Args& args, int64_t begin, int64_t end) {
  const int shift = ShiftOfB(args.a_signed, args.b_signed);
  if (args.b_zero.data == nullptr || args.b_zero.step == 0) return args.b_zero.At(0) + shift != 0;
  const auto* points = static_cast<const uint8_t*>(args.b_zero.data);
  const auto wanted = static_cast<uint8_t>(-shift);
  uint64_t all;
  std::memset(&all, wanted, sizeof(all));
  int64_t j = begin;
  for (; j + 8 <= end; j += 8) {
    uint64_t eight;
    std::memcpy(&eight, points + j, sizeof(eight));
    if (eight != all) return true;
  }
  for (; j < end; ++j) {
    if (points[j] != wanted) return true;
  }
  return false;
}

uint32_t SumOfRow(const uint8_t* HWY_RESTRICT row, int64_t k, bool is_signed) {
  const int flip = is_signed ? 0x80 : 0;
  uint32_t sum = is_signed ? static_cast<uint32_t>(-128 * k) : 0;
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<uint8_t, F32> d8;
  const hn::Repartition<uint64_t, F32> d64;
  const auto flips = hn::Set(d8, static_cast<uint8_t>(flip));
  auto sums = hn::Zero(d64);
  constexpr int64_t kBytes = int64_t{kLanes} * 4;
  for (; i + kBytes <= k; i += kBytes) {
    sums = hn::Add(sums, hn::SumsOf8(hn::Xor(flips, hn::LoadU(d8, row + i))));
  }
  if (i > 0 && i < k) {
    // The last vector reaches back over bytes that are summed.
    const auto bytes = hn::Xor(flips, hn::LoadU(d8, row + k - kBytes));
    const auto summed = hn::FirstN(d8, static_cast<size_t>(i + kBytes - k));
    sums = hn::Add(sums, hn::SumsOf8(hn::IfThenZeroElse(summed, bytes)));
    i = k;
  }
  sum += static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(d64, sums)));
#endif
  for (; i < k; ++i) sum += static_cast<uint32_t>(row[i] ^ flip);
  return sum;
}

// Returns the bounds of an epilogue that gives bytes; nullopt where C is of floats or integers.
HWY_INLINE std::optional<StepBounds> BoundsOf(const U8S8Args& args) {
  if (args.a_scale == nullptr || args.finish == nullptr) return std::nullopt;
  return StepBounds(*args.finish);
}
HWY_INLINE const StepBounds* PointerTo(const std::optional<StepBounds>& bounds) {
  return bounds.has_value() ? &*bounds : nullptr;
}

// Rows of a block, so that their terms are found once for all panels.
class RowBlock {
 public:
  RowBlock(const U8S8Args& args, int64_t begin, int64_t end, bool with_sums) {
    const auto* a = static_cast<const uint8_t*>(args.a);
    if (with_sums) {
      for (int64_t r = begin; r < end; ++r) {
        sums_[r - begin] = SumOfRow(a + r * args.lda, args.k, args.a_signed);
      }
      terms.sum = sums_;
    }
    if (args.a_zero.data != nullptr && args.a_zero.step != 0) {
      for (int64_t r = begin; r < end; ++r) {
        zeros_[r - begin] = static_cast<uint32_t>(args.a_zero.At(r));
      }
      terms.zero = zeros_;
    }
    if (args.a_scale != nullptr && args.a_scale_step != 0) terms.scale = args.a_scale + begin;
  }
  RowBlock(const RowBlock&) = delete;

  RowTerms terms = {};

 private:
  uint32_t sums_[kRowsAtATime];
  uint32_t zeros_[kRowsAtATime];
};

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

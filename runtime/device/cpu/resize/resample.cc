#include "runtime/device/cpu/resize/resample.h"

#include <algorithm>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/resize/resample.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);

// Picks the elements at a vector of places. Where columns grow, these lie in one vector of the row;
// where they shrink by two at most, in two.
HWY_INLINE VF Pick(F32 d, const float* HWY_RESTRICT from, int64_t in_columns,
                   const int32_t* HWY_RESTRICT places) {
#if HWY_TARGET == HWY_SCALAR
  return hn::LoadU(d, from + places[0]);
#else
  const hn::RebindToSigned<F32> di;
  const auto at = hn::LoadU(di, places);
  const auto after = [&](int64_t first)
                         HWY_ATTR { return hn::Sub(at, hn::Set(di, static_cast<int32_t>(first))); };
  const int64_t first = std::min<int64_t>(places[0], in_columns - kLanes);
  if (first < 0) {  // The whole row.
    return hn::TableLookupLanes(LoadPart(d, from, in_columns), hn::IndicesFromVec(d, at));
  }
  if (places[kLanes - 1] - first < kLanes) {
    return hn::TableLookupLanes(hn::LoadU(d, from + first), hn::IndicesFromVec(d, after(first)));
  }
  const int64_t first_of_two = std::min<int64_t>(places[0], in_columns - 2 * kLanes);
  if (first_of_two >= 0 && places[kLanes - 1] - first_of_two < 2 * kLanes) {
    const float* const two = from + first_of_two;
    const auto lanes = after(first_of_two);
    const auto last_lane = hn::Set(di, static_cast<int32_t>(kLanes - 1));
    const auto in_table = hn::IndicesFromVec(d, hn::And(lanes, last_lane));
    return hn::IfThenElse(hn::RebindMask(d, hn::Gt(lanes, last_lane)),
                          hn::TableLookupLanes(hn::LoadU(d, two + kLanes), in_table),
                          hn::TableLookupLanes(hn::LoadU(d, two), in_table));
  }
  return hn::GatherIndex(d, from, at);
#endif
}

// Rows of the scratch have room for whole vectors; parts of one are slow to read back.
enum class RowEnd { kExact, kPadded };

template <RowEnd kEnd>
HWY_INLINE VF Load(F32 d, const float* from, int64_t live) {
  return kEnd == RowEnd::kPadded || live >= kLanes ? hn::LoadU(d, from) : LoadPart(d, from, live);
}

template <RowEnd kEnd>
HWY_INLINE void Store(VF v, F32 d, float* to, int64_t live) {
  if (kEnd == RowEnd::kPadded || live >= kLanes) {
    hn::StoreU(v, d, to);
  } else {
    StorePart(v, d, to, live);
  }
}

// Samples the row `from` at the columns of the result, into `copies` rows. kTaps 0: any number.
template <RowEnd kEnd, int kTaps>
HWY_INLINE void SampleColumnsBy(const ResampledColumns& c, const float* HWY_RESTRICT from,
                                float* HWY_RESTRICT to, int64_t copies) {
  const F32 d;
  const int taps = kTaps == 0 ? c.taps : kTaps;
  const int32_t* HWY_RESTRICT const places = c.places.data();
  const float* HWY_RESTRICT const weights = c.weights.data();
  const int64_t columns = c.columns, in_columns = c.in_columns, stride = c.stride;
  for (int64_t i = 0; i < columns; i += kLanes) {
    VF sum = Pick(d, from, in_columns, places + i);
    if (taps > 1) sum = hn::Mul(sum, hn::LoadU(d, weights + i));
    for (int tap = 1; tap < taps; ++tap) {
      const VF x = Pick(d, from, in_columns, places + tap * stride + i);
      sum = hn::MulAdd(x, hn::LoadU(d, weights + tap * stride + i), sum);
    }
    for (int64_t copy = 0; copy < copies; ++copy)
      Store<kEnd>(sum, d, to + copy * columns + i, columns - i);
  }
}

template <RowEnd kEnd>
HWY_INLINE void SampleColumns(const ResampledColumns& c, const float* from, float* to,
                              int64_t copies) {
  if (c.taps == 1) return SampleColumnsBy<kEnd, 1>(c, from, to, copies);
  if (c.taps == 2) return SampleColumnsBy<kEnd, 2>(c, from, to, copies);
  return SampleColumnsBy<kEnd, 0>(c, from, to, copies);
}

// Sets `to` to the sum of kTaps rows of `size`, times their weights.
template <RowEnd kFrom, RowEnd kTo, int kTaps>
HWY_INLINE void SumRowsBy(const float* const* taps, const float* weights, int64_t size,
                          float* HWY_RESTRICT to) {
  const F32 d;
  const float* rows[kTaps];
  VF by[kTaps];
  for (int tap = 0; tap < kTaps; ++tap) {
    rows[tap] = taps[tap];
    by[tap] = hn::Set(d, weights[tap]);
  }
  for (int64_t i = 0; i < size; i += kLanes) {
    const int64_t live = size - i;
    const auto load = [&](int tap) HWY_ATTR { return Load<kFrom>(d, rows[tap] + i, live); };
    VF sum = load(0);
    if (kTaps > 1) sum = hn::Mul(sum, by[0]);
    for (int tap = 1; tap < kTaps; ++tap) sum = hn::MulAdd(load(tap), by[tap], sum);
    Store<kTo>(sum, d, to + i, live);
  }
}

// Adds up any number of rows.
template <RowEnd kFrom, RowEnd kTo>
HWY_INLINE void SumManyRows(const float* const* rows, const float* weights, int count, int64_t size,
                            float* to) {
  const F32 d;
  for (int64_t i = 0; i < size; i += kLanes) {
    const int64_t live = size - i;
    VF sum = hn::Mul(Load<kFrom>(d, rows[0] + i, live), hn::Set(d, weights[0]));
    for (int tap = 1; tap < count; ++tap) {
      sum = hn::MulAdd(Load<kFrom>(d, rows[tap] + i, live), hn::Set(d, weights[tap]), sum);
    }
    Store<kTo>(sum, d, to + i, live);
  }
}

template <RowEnd kFrom, RowEnd kTo>
HWY_INLINE void SumRows(const float* const* taps, const float* weights, int count, int64_t size,
                        float* to) {
  static_assert(Resampling::kKeptRows == 4);
  if (count > Resampling::kKeptRows) {
    return SumManyRows<kFrom, kTo>(taps, weights, count, size, to);
  }
  if (count == 1) return SumRowsBy<kFrom, kTo, 1>(taps, weights, size, to);
  if (count == 2) return SumRowsBy<kFrom, kTo, 2>(taps, weights, size, to);
  if (count == 3) return SumRowsBy<kFrom, kTo, 3>(taps, weights, size, to);
  return SumRowsBy<kFrom, kTo, 4>(taps, weights, size, to);
}

// Samples each row of the operand once, and keeps it in `scratch` until no further row of the
// result needs it.
class SampledRows {
 public:
  SampledRows(const ResampledColumns& columns, float* scratch)
      : columns_(columns), scratch_(scratch) {
    std::fill_n(holds_, Resampling::kKeptRows, -1);
  }

  // Row `row` of the planes at `x`, counted through all of them.
  HWY_INLINE const float* At(const float* x, int64_t row) {
    const int64_t slot = row % Resampling::kKeptRows;
    float* const to = scratch_ + slot * columns_.stride;
    if (holds_[slot] != row)
      SampleColumns<RowEnd::kPadded>(columns_, x + row * columns_.in_columns, to, 1);
    holds_[slot] = row;
    return to;
  }

 private:
  const ResampledColumns& columns_;
  float* const scratch_;
  int64_t holds_[Resampling::kKeptRows];
};

// Computes rows [row, row + count) of a plane's result, whose operand begins with row `first_row`
// of x, each from a single row of it.
void LoneRows(const Resampling& of, int64_t row, int64_t count, int64_t first_row, const float* x,
              float* out) {
  const ResampledColumns& columns = of.columns;
  const int32_t* const places = of.row_places.data() + row;
  for (int64_t i = 0; i < count;) {
    int64_t copies = 1;
    while (i + copies < count && places[i + copies] == places[i]) ++copies;
    SampleColumns<RowEnd::kExact>(columns, x + (first_row + places[i]) * columns.in_columns,
                                  out + i * columns.columns, copies);
    i += copies;
  }
}

// Resamples rows each of which is a sum of rows.
void SummedRows(const Resampling& of, int64_t row, int64_t count, int64_t first_row, const float* x,
                SampledRows& sampled, float* scratch, float* out) {
  const ResampledColumns& columns = of.columns;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first_tap = (row + i) * of.row_taps;
    const float* const weights = of.row_weights.data() + first_tap;
    float* const to = out + i * columns.columns;
    const float* taps[Resampling::kMaxRowTaps];
    const bool from_operand = columns.taps == 0 || of.rows_first;
    for (int tap = 0; tap < of.row_taps; ++tap) {
      const int64_t source = first_row + of.row_places[first_tap + tap];
      taps[tap] = from_operand ? x + source * columns.in_columns : sampled.At(x, source);
    }
    if (columns.taps == 0) {
      SumRows<RowEnd::kExact, RowEnd::kExact>(taps, weights, of.row_taps, columns.columns, to);
    } else if (of.rows_first) {
      SumRows<RowEnd::kExact, RowEnd::kPadded>(taps, weights, of.row_taps, columns.in_columns,
                                               scratch);
      SampleColumns<RowEnd::kExact>(columns, scratch, to, 1);
    } else {
      SumRows<RowEnd::kPadded, RowEnd::kExact>(taps, weights, of.row_taps, columns.columns, to);
    }
  }
}

void Rows(const Resampling& of, int64_t begin, int64_t end, const float* x, float* scratch,
          float* out) {
  const bool lone = of.row_taps == 1 && of.columns.taps > 0;
  SampledRows sampled(of.columns, scratch);
  for (int64_t i = begin, plane = begin / of.out_rows; i < end; ++plane) {
    const int64_t row = i - plane * of.out_rows;
    const int64_t count = std::min(of.out_rows - row, end - i);
    float* const to = out + i * of.columns.columns;
    if (lone) {
      LoneRows(of, row, count, plane * of.in_rows, x, to);
    } else {
      SummedRows(of, row, count, plane * of.in_rows, x, sampled, scratch, to);
    }
    i += count;
  }
}

}  // namespace

constexpr ResampleKernels kResampleKernels = {Rows};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

int64_t Resampling::ScratchFloats() const {
  if (columns.taps == 0 || row_taps == 1) return 0;
  return rows_first ? WholeVectors(columns.in_columns) : kKeptRows * columns.stride;
}

const ResampleKernels& ResampleKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kResampleKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE

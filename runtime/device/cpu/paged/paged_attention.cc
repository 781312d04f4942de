#include "runtime/device/cpu/paged/paged_attention.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "runtime/device/cpu/simd/targets.h"
#include "runtime/ops/attention/paged.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/paged/paged_attention.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/paged/paged_cells-inl.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kPage = ops::kPagePositions;
constexpr int kPageVectors = static_cast<int>(kPage / kLanes);
static_assert(kPage % kLanes == 0);
#if HWY_TARGET == HWY_AVX3
constexpr int64_t kRows = 8;
constexpr int kPagesAtOnce = 2;  // whose scores are summed side by side
#else
constexpr int64_t kRows = 4;
constexpr int kPagesAtOnce = 1;
#endif
static_assert(kRows <= kMostPagedRows);

// The positions that a call looks at.
struct Range {
  int64_t first = 0;  // the first of a page
  int64_t last = 0;   // the last position of any row
  int64_t whole = 0;  // pages that end before this position are seen whole, or masked, by all rows

  int64_t first_page() const { return first / kPage; }
  int64_t last_page() const { return last / kPage; }
};

int64_t WindowStart(const PagedArgs& args, int64_t position) {
  return args.window > 0 ? std::max<int64_t>(0, position - args.window + 1) : 0;
}

Range RangeOf(const PagedArgs& args, const PagedRow* rows, int64_t count) {
  Range range = {.first = std::numeric_limits<int64_t>::max(),
                 .whole = std::numeric_limits<int64_t>::max()};
  for (int64_t r = 0; r < count; ++r) {
    range.first = std::min(range.first, WindowStart(args, rows[r].position));
    range.last = std::max(range.last, rows[r].position);
    range.whole = std::min(range.whole, rows[r].position);
  }
  range.first = range.first / kPage * kPage;
  return range;
}

// Returns the scores of vector `v` of the page at `position`, as the softmax sees them.
HWY_INLINE VF Finished(const PagedArgs& args, const PagedRow& row, int64_t position, VF score) {
  score = hn::Mul(score, hn::Set(kF32, args.scale));
  if (args.softcap != 0) {
    const VF cap = hn::Set(kF32, args.softcap);
    score = hn::Mul(cap, Tanh(kF32, hn::Div(score, cap)));
  }
  if (row.biases != nullptr) {
    // The distance of the first lane; farther ones than all that have a bias get the last one.
    const int64_t farthest = args.bias_span - 1, distance = row.position - position;
    const int64_t at = std::max<int64_t>(farthest - distance, -kLanes);
    score = hn::Add(score, hn::LoadU(kF32, row.biases + std::min(at, farthest)));
  }
  const int64_t start = WindowStart(args, row.position);
  const bool whole = position >= start && position + kLanes - 1 <= row.position;
  if (whole && row.slope == 0) return score;
  // Relative to the query, so that far positions are exact.
  const VF place =
      hn::Add(hn::Iota(kF32, 0.0f), hn::Set(kF32, static_cast<float>(position - row.position)));
  if (row.slope != 0) score = hn::MulAdd(hn::Set(kF32, row.slope), place, score);
  const VF low = hn::Set(kF32, static_cast<float>(start - row.position));
  const auto seen = hn::And(hn::Le(place, hn::Zero(kF32)), hn::Ge(place, low));
  return hn::IfThenElse(seen, score, hn::Set(kF32, -std::numeric_limits<float>::infinity()));
}

// Returns the rows of page `page` as floats, `size` each: a client's own, or a copy.
const float* RowsOf(const PagedArgs& args, const std::byte* rows, int64_t size, int64_t page) {
  const int64_t base = page * kPage, count = std::min(kPage, args.positions - base);
  if (args.widen == nullptr) return reinterpret_cast<const float*>(rows) + base * size;
  constexpr int64_t kHalf = 2;  // bytes
  float* const wide = args.tile + 2 * args.head_dim * kPage;
  args.widen(rows + base * size * kHalf, wide, count * size);
  return wide;
}

// Writes the keys of page `page` to `to`, as a page holds them; missing ones are zeros.
void CopyKeys(const PagedArgs& args, int64_t page, float* to) {
  const int64_t count = std::min(kPage, args.positions - page * kPage);
  if (count < kPage) std::fill_n(to, args.head_dim * kPage, 0.0f);
  args.transpose(RowsOf(args, args.keys, args.head_dim, page), args.head_dim, count, args.head_dim,
                 to, kPage);
}

template <class Cell>
HWY_INLINE const Cell* KeysOf(const PagedArgs& args, int64_t page) {
  return reinterpret_cast<const Cell*>(args.pages[page]) + args.k_offset;
}
template <class Cell>
HWY_INLINE const Cell* ValuesOf(const PagedArgs& args, int64_t page) {
  return reinterpret_cast<const Cell*>(args.pages[page]) + args.v_offset;
}

// Pages lie anywhere, a few kilobytes of each are read, and no hardware knows which come next. So
// a few pages ahead are prefetched into the L2 cache: keys of all pages, then values of all
// pages, then keys of the call that follows. A Zen 4 reads 30 of 32 GB/s so, 10 otherwise.
constexpr int64_t kPagesAhead = 6;

// Returns the keys, or the values, of `page`, or where that is after the last one, those that come
// next. Null: nothing is known.
template <class Cell>
HWY_INLINE const char* KeysAhead(const PagedArgs& args, const Range& range, int64_t page) {
  const int64_t last = range.last_page();
  if (page <= last) return reinterpret_cast<const char*>(KeysOf<Cell>(args, page));
  page += range.first_page() - last - 1;
  return page <= last ? reinterpret_cast<const char*>(ValuesOf<Cell>(args, page)) : nullptr;
}
template <class Cell>
HWY_INLINE const char* ValuesAhead(const PagedArgs& args, const Range& range, int64_t page) {
  const int64_t last = range.last_page();
  if (page <= last) return reinterpret_cast<const char*>(ValuesOf<Cell>(args, page));
  page += args.next.first_page - last - 1;
  return page <= args.next.last_page
             ? reinterpret_cast<const char*>(reinterpret_cast<const Cell*>(args.next.pages[page]) +
                                             args.next.k_offset)
             : nullptr;
}

// The queries of a call in pairs, where they are rounded.
struct RoundedQueries {
  float words[kMostPagedRows][kMostRoundedHead / 2];
};

// Scores of `Pages` pages from `page` on, for all rows.
template <class Cell, bool Carried, Form form, int Rows, int Pages>
HWY_INLINE void Scores(const PagedArgs& args, const PagedRow* rows, const RoundedQueries* queries,
                       const Range& range, int64_t page, VF* highest) {
  const char* ahead[Pages];
  VF sums[Rows][Pages * kPageVectors];
  const Cell* keys[Pages];
  HWY_UNROLL(8) for (int r = 0; r < Rows; ++r) {
    HWY_UNROLL(16) for (int i = 0; i < Pages * kPageVectors; ++i) sums[r][i] = hn::Zero(kF32);
  }
  HWY_UNROLL(2) for (int p = 0; p < Pages; ++p) {
    if constexpr (Carried) {
      float* const tile = args.tile + p * args.head_dim * kPage;
      CopyKeys(args, page + p, tile);
      keys[p] = tile;
    } else {
      keys[p] = KeysOf<Cell>(args, page + p);
      ahead[p] = KeysAhead<Cell>(args, range, page + kPagesAhead + p);
      if (ahead[p] == nullptr) ahead[p] = reinterpret_cast<const char*>(keys[p]);
    }
  }
#if HWY_TARGET == HWY_AVX3
  for (int64_t d = 0; form == Form::kRounded && d < args.head_dim; d += 2) {
    HWY_UNROLL(2) for (int p = 0; p < Pages; ++p) {
      if constexpr (!Carried) {
        constexpr int64_t kBytes = kPage * int64_t{sizeof(Cell)};
        __builtin_prefetch(ahead[p] + d * kBytes, /*rw=*/0, /*locality=*/2);
        __builtin_prefetch(ahead[p] + (d + 1) * kBytes, /*rw=*/0, /*locality=*/2);
      }
      const Cell* const at = keys[p] + d * kPage;
      const VF key = d + 1 < args.head_dim ? PairCells(at, at + kPage)
                                           : PairLanes(LoadCells(at), hn::Zero(kF32));
      HWY_UNROLL(8) for (int r = 0; r < Rows; ++r) {
        AccumulatePairs(sums[r][p], hn::Set(kF32, queries->words[r][d / 2]), key);
      }
    }
  }
#endif
  for (int64_t d = 0; form == Form::kExact && d < args.head_dim; ++d) {
    HWY_UNROLL(2) for (int p = 0; p < Pages; ++p) {
      if constexpr (!Carried) {
        constexpr int64_t kBytes = kPage * int64_t{sizeof(Cell)};
        __builtin_prefetch(ahead[p] + d * kBytes, /*rw=*/0, /*locality=*/2);
      }
      HWY_UNROLL(16) for (int v = 0; v < kPageVectors; ++v) {
        const VF key = LoadCells(keys[p] + d * kPage + v * kLanes);
        HWY_UNROLL(8) for (int r = 0; r < Rows; ++r) {
          VF& sum = sums[r][p * kPageVectors + v];
          sum = hn::MulAdd(hn::Set(kF32, rows[r].q[d]), key, sum);
        }
      }
    }
  }
  if constexpr (kScaled<Cell>) {
    HWY_UNROLL(2) for (int p = 0; p < Pages; ++p) {
      const float* scales = reinterpret_cast<const float*>(args.pages[page + p]) + args.k_scales;
      HWY_UNROLL(16) for (int v = 0; v < kPageVectors; ++v) {
        const VF scale = hn::LoadU(kF32, scales + v * kLanes);
        HWY_UNROLL(8) for (int r = 0; r < Rows; ++r) {
          VF& sum = sums[r][p * kPageVectors + v];
          sum = hn::Mul(sum, scale);
        }
      }
    }
  }
  float* const scores = args.scratch - range.first + page * kPage;
  HWY_UNROLL(8) for (int r = 0; r < Rows; ++r) {
    HWY_UNROLL(16) for (int i = 0; i < Pages * kPageVectors; ++i) {
      hn::StoreU(sums[r][i], kF32, scores + r * args.scratch_stride + i * kLanes);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int64_t i = 0; i < Pages * kPage; i += kLanes) {
      float* const at = scores + r * args.scratch_stride + i;
      const VF score = Finished(args, rows[r], page * kPage + i, hn::LoadU(kF32, at));
      hn::StoreU(score, kF32, at);
      highest[r] = hn::Max(highest[r], score);
    }
  }
}

// Scores become weights; returns their sum, to which the weight of `sink` is added at the end.
float Weigh(float* scores, int64_t count, float highest, float sink) {
  const bool has_sink = sink > -std::numeric_limits<float>::infinity();
  const VF most = hn::Set(kF32, has_sink ? std::max(highest, sink) : highest);
  VF sums[kPageVectors];
  for (VF& sum : sums) sum = hn::Zero(kF32);
  for (int64_t i = 0; i < count; i += kPage) {
    for (int v = 0; v < kPageVectors; ++v) {
      float* at = scores + i + v * kLanes;
      const VF weight = SoftmaxExp(kF32, hn::Sub(hn::LoadU(kF32, at), most));
      hn::StoreU(weight, kF32, at);
      sums[v] = hn::Add(sums[v], weight);
    }
  }
  for (int v = 1; v < kPageVectors; ++v) sums[0] = hn::Add(sums[0], sums[v]);
  const float total = hn::GetLane(hn::SumOfLanes(kF32, sums[0]));
  if (!has_sink) return total;
  return total + hn::GetLane(SoftmaxExp(kF32, hn::Sub(hn::Set(kF32, sink), most)));
}

#if HWY_TARGET == HWY_AVX3
// Turns the weights of a row into pairs, in place; times the scales of values where there are any.
template <class Cell>
void PairWeights(const PagedArgs& args, const PagedRow& row, const Range& range, float* weights) {
  const hn::RebindToSigned<F32> words;
  for (int64_t page = range.first_page(); page <= range.last_page(); page += 2) {
    VF pair[2];
    for (int64_t p = 0; p < 2; ++p) {
      pair[p] = hn::Zero(kF32);
      const int64_t base = (page + p) * kPage;
      if (page + p > range.last_page()) break;
      pair[p] = hn::LoadU(kF32, weights + base - range.first);
      if constexpr (kScaled<Cell>) {
        // Positions after the row's own have any scales.
        const auto seen = hn::Lt(hn::Iota(words, static_cast<int32_t>(base)),
                                 hn::Set(words, static_cast<int32_t>(row.position + 1)));
        const float* scales = reinterpret_cast<const float*>(args.pages[page + p]) + args.v_scales;
        pair[p] = hn::IfThenElseZero(hn::RebindMask(kF32, seen),
                                     hn::Mul(pair[p], hn::LoadU(kF32, scales)));
      }
    }
    hn::StoreU(RoundPair(pair[0], pair[1]), kF32, weights + (page * kPage - range.first) / 2);
  }
}

// Adds the values of a page to the sums: all of it for all rows where `whole`, else for each row
// the values up to its own position.
template <class Cell, int Rows, int Vectors>
HWY_INLINE void PairedValues(const PagedArgs& args, const PagedRow* rows, const Range& range,
                             int64_t base, const Cell* values, const char* ahead, int64_t stride,
                             VF (&sums)[Rows][Vectors]) {
  const float* const weights = args.scratch + (base - range.first) / 2;
  if (base + kPage - 1 <= range.whole) {
    for (int64_t j = 0; j < kPage; j += 2) {
      VF value[Vectors];
      HWY_UNROLL(16) for (int v = 0; v < Vectors; ++v) {
        const int64_t at = j * stride + v * kLanes;
        if (ahead != nullptr) {
          __builtin_prefetch(ahead + at * int64_t{sizeof(Cell)}, /*rw=*/0, /*locality=*/2);
          __builtin_prefetch(ahead + (at + stride) * int64_t{sizeof(Cell)}, /*rw=*/0,
                             /*locality=*/2);
        }
        value[v] = PairCells(values + at, values + at + stride);
      }
      HWY_UNROLL(8) for (int r = 0; r < Rows; ++r) {
        const VF weight = hn::Set(kF32, weights[r * args.scratch_stride + j / 2]);
        HWY_UNROLL(16)
        for (int v = 0; v < Vectors; ++v) AccumulatePairs(sums[r][v], weight, value[v]);
      }
    }
    return;
  }
  HWY_UNROLL(8) for (int r = 0; r < Rows; ++r) {
    const int64_t end = std::min(kPage, rows[r].position - base + 1);
    for (int64_t j = 0; j < end; j += 2) {
      const VF weight = hn::Set(kF32, weights[r * args.scratch_stride + j / 2]);
      HWY_UNROLL(16) for (int v = 0; v < Vectors; ++v) {
        const Cell* const at = values + j * stride + v * kLanes;
        const VF value =
            j + 1 < end ? PairCells(at, at + stride) : PairLanes(LoadCells(at), hn::Zero(kF32));
        AccumulatePairs(sums[r][v], weight, value);
      }
    }
  }
}
#endif

// Columns [column, column + Vectors * kLanes) of the results.
template <class Cell, bool Carried, Form form, int Rows, int Vectors>
HWY_INLINE void Values(const PagedArgs& args, const PagedRow* rows, const Range& range,
                       const float* totals, int64_t column) {
  VF sums[Rows][Vectors];
  HWY_UNROLL(8) for (int r = 0; r < Rows; ++r) {
    HWY_UNROLL(16) for (int v = 0; v < Vectors; ++v) sums[r][v] = hn::Zero(kF32);
  }
  const int64_t stride = Carried ? args.v_head_dim : ops::PagedValueStride(args.v_head_dim);
  const float* weights = args.scratch - range.first;
  for (int64_t page = range.first_page(); page <= range.last_page(); ++page) {
    const int64_t base = page * kPage;
    const Cell* values = nullptr;
    const char* ahead = nullptr;
    const float* scales = nullptr;
    if constexpr (Carried) {
      values = RowsOf(args, args.values, args.v_head_dim, page) + column;
    } else {
      values = ValuesOf<Cell>(args, page) + column;
      scales = reinterpret_cast<const float*>(args.pages[page]) + args.v_scales;
      ahead = ValuesAhead<Cell>(args, range, page + kPagesAhead);
      ahead = ahead == nullptr ? reinterpret_cast<const char*>(values)
                               : ahead + column * int64_t{sizeof(Cell)};
    }
#if HWY_TARGET == HWY_AVX3
    if constexpr (form == Form::kRounded) {
      PairedValues<Cell>(args, rows, range, base, values, ahead, stride, sums);
      continue;
    }
#endif
    // How much value `j` of the page weighs for row `r`.
    const auto weight_of = [&](int r, int64_t j) HWY_ATTR {
      const float weight = weights[r * args.scratch_stride + base + j];
      return hn::Set(kF32, kScaled<Cell> ? weight * scales[j] : weight);
    };
    if (base + kPage - 1 <= range.whole) {
      for (int64_t j = 0; j < kPage; ++j) {
        VF value[Vectors];
        HWY_UNROLL(16) for (int v = 0; v < Vectors; ++v) {
          const int64_t at = j * stride + v * kLanes;
          if constexpr (!Carried) {
            __builtin_prefetch(ahead + at * int64_t{sizeof(Cell)}, /*rw=*/0, /*locality=*/2);
          }
          value[v] = LoadCells(values + at);
        }
        HWY_UNROLL(8) for (int r = 0; r < Rows; ++r) {
          const VF weight = weight_of(r, j);
          HWY_UNROLL(16)
          for (int v = 0; v < Vectors; ++v) sums[r][v] = hn::MulAdd(weight, value[v], sums[r][v]);
        }
      }
      continue;
    }
    // A row reads nothing after its own position: that may be anything.
    HWY_UNROLL(8) for (int r = 0; r < Rows; ++r) {
      const int64_t end = std::min(kPage, rows[r].position - base + 1);
      for (int64_t j = 0; j < end; ++j) {
        const VF weight = weight_of(r, j);
        HWY_UNROLL(16) for (int v = 0; v < Vectors; ++v) {
          const VF value = LoadCells(values + j * stride + v * kLanes);
          sums[r][v] = hn::MulAdd(weight, value, sums[r][v]);
        }
      }
    }
  }
  HWY_UNROLL(8) for (int r = 0; r < Rows; ++r) {
    const VF total = hn::Set(kF32, totals[r]);
    HWY_UNROLL(16) for (int v = 0; v < Vectors; ++v) {
      const int64_t at = column + v * kLanes;
      const int64_t live = std::min(kLanes, args.v_head_dim - at);
      if (live <= 0) break;
      StorePart(hn::Div(sums[r][v], total), kF32, rows[r].out + at, live);
    }
  }
}

template <class Cell, bool Carried, Form form, int Rows>
void RunRows(const PagedArgs& args, const PagedRow* rows) {
  const Range range = RangeOf(args, rows, Rows);
  RoundedQueries rounded;
  if constexpr (form == Form::kRounded) {
#if HWY_TARGET == HWY_AVX3
    for (int r = 0; r < Rows; ++r) RoundToPairs(rows[r].q, args.head_dim, rounded.words[r]);
#endif
  }
  VF highest[Rows];
  for (VF& one : highest) one = hn::Set(kF32, -std::numeric_limits<float>::infinity());
  int64_t page = range.first_page();
  for (; page + kPagesAtOnce - 1 <= range.last_page(); page += kPagesAtOnce) {
    Scores<Cell, Carried, form, Rows, kPagesAtOnce>(args, rows, &rounded, range, page, highest);
  }
  for (; page <= range.last_page(); ++page) {
    Scores<Cell, Carried, form, Rows, 1>(args, rows, &rounded, range, page, highest);
  }
  float totals[Rows];
  const int64_t count = (range.last_page() + 1) * kPage - range.first;
  for (int r = 0; r < Rows; ++r) {
    totals[r] = Weigh(args.scratch + r * args.scratch_stride, count,
                      hn::GetLane(hn::MaxOfLanes(kF32, highest[r])), rows[r].sink);
#if HWY_TARGET == HWY_AVX3
    if constexpr (form == Form::kRounded) {
      PairWeights<Cell>(args, rows[r], range, args.scratch + r * args.scratch_stride);
    }
#endif
  }
  // AVX-512's 32 registers or AVX2's 16 hold the sums of all rows, the values and a weight.
  constexpr int kMostRows = HWY_TARGET == HWY_AVX3 ? 6 : 2;
  constexpr int kVectors = kLanes == 1 ? 16 : Rows <= kMostRows ? 4 : 2;
  const int64_t width = ops::PagedValueStride(args.v_head_dim);
  int64_t column = 0;
  for (; column + kVectors * kLanes <= width; column += kVectors * kLanes) {
    Values<Cell, Carried, form, Rows, kVectors>(args, rows, range, totals, column);
  }
  for (; column < width; column += kLanes) {
    Values<Cell, Carried, form, Rows, 1>(args, rows, range, totals, column);
  }
}

template <class Cell, bool Carried, Form form, int... Counts>
void Dispatch(const PagedArgs& args, const PagedRow* rows, int64_t count,
              std::integer_sequence<int, Counts...>) {
  ((count == Counts + 1 ? RunRows<Cell, Carried, form, Counts + 1>(args, rows) : void()), ...);
}

template <class Cell, Form wanted, bool Carried = false>
void Rows(const PagedArgs& args, const PagedRow* rows, int64_t count) {
  constexpr Form kForm = kRounds ? wanted : Form::kExact;
  Dispatch<Cell, Carried, kForm>(args, rows, count,
                                 std::make_integer_sequence<int, static_cast<int>(kRows)>());
}

template <Form form>
constexpr PagedTable kTable = {.kernels = {{kRows, Rows<float, form>},
                                           {kRows, Rows<uint16_t, form>},
                                           {kRows, Rows<int8_t, form>},
                                           {kRows, Rows<float, form, true>}}};

}  // namespace

constexpr PagedTables kPagedKernels = {.exact = kTable<Form::kExact>,
                                       .rounded = kTable<Form::kRounded>};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

namespace {

const PagedKernels& KernelsOf(Isa isa, size_t which, bool rounds) {
  const PagedTables& tables = REPRISE_CHOOSE_TARGET(isa, kPagedKernels);
  return (rounds && RoundsPages(isa) ? tables.rounded : tables.exact).kernels[which];
}

}  // namespace

bool RoundsPages(Isa isa) { return REPRISE_WITH_AVX512 != 0 && isa.Has(CpuFeature::kAvx512Bf16); }

const PagedKernels& PagedKernelsFor(Isa isa, ops::CacheDType dtype, bool rounds) {
  return KernelsOf(isa, static_cast<size_t>(dtype), rounds);
}

const PagedKernels& CarriedKernelsFor(Isa isa, bool rounds) {
  constexpr size_t kCarried = 3;  // they follow those by CacheDType
  return KernelsOf(isa, kCarried, rounds);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE

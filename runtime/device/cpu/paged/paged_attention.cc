#include "runtime/device/cpu/paged/paged_attention.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/device/cpu/simd/targets.h"
#include "runtime/ops/attention/paged.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/paged/paged_attention.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
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

constexpr F32 kF32 = {};

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

// The scores of vector `v` of the page at `position`, as the softmax sees them.
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

// Scores of `Pages` pages from `page` on, for all rows.
template <int Rows, int Pages>
HWY_INLINE void Scores(const PagedArgs& args, const PagedRow* rows, const Range& range,
                       int64_t page, VF* highest) {
  VF sums[Rows][Pages * kPageVectors];
  const float* keys[Pages];
  for (int r = 0; r < Rows; ++r) {
    for (VF& sum : sums[r]) sum = hn::Zero(kF32);
  }
  for (int p = 0; p < Pages; ++p) {
    keys[p] = reinterpret_cast<const float*>(args.pages[page + p]) + args.k_offset;
  }
  for (int64_t d = 0; d < args.head_dim; ++d) {
    for (int p = 0; p < Pages; ++p) {
      for (int v = 0; v < kPageVectors; ++v) {
        const VF key = hn::LoadU(kF32, keys[p] + d * kPage + v * kLanes);
        for (int r = 0; r < Rows; ++r) {
          VF& sum = sums[r][p * kPageVectors + v];
          sum = hn::MulAdd(hn::Set(kF32, rows[r].q[d]), key, sum);
        }
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    float* to = args.scratch + r * args.scratch_stride - range.first;
    for (int i = 0; i < Pages * kPageVectors; ++i) {
      const int64_t position = page * kPage + i * kLanes;
      const VF score = Finished(args, rows[r], position, sums[r][i]);
      hn::StoreU(score, kF32, to + position);
      highest[r] = hn::Max(highest[r], score);
    }
  }
}

// Scores become weights; returns their sum.
float Weigh(float* scores, int64_t count, float highest) {
  const VF most = hn::Set(kF32, highest);
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
  return hn::GetLane(hn::SumOfLanes(kF32, sums[0]));
}

// Columns [column, column + Vectors * kLanes) of the results.
template <int Rows, int Vectors>
HWY_INLINE void Values(const PagedArgs& args, const PagedRow* rows, const Range& range,
                       const float* totals, int64_t column) {
  VF sums[Rows][Vectors];
  for (int r = 0; r < Rows; ++r) {
    for (VF& sum : sums[r]) sum = hn::Zero(kF32);
  }
  const int64_t stride = ops::PagedValueStride(args.v_head_dim);
  const float* weights = args.scratch - range.first;
  for (int64_t page = range.first_page(); page <= range.last_page(); ++page) {
    const int64_t base = page * kPage;
    const float* values = reinterpret_cast<const float*>(args.pages[page]) + args.v_offset + column;
    if (base + kPage - 1 <= range.whole) {
      for (int64_t j = 0; j < kPage; ++j) {
        VF value[Vectors];
        for (int v = 0; v < Vectors; ++v) {
          value[v] = hn::LoadU(kF32, values + j * stride + v * kLanes);
        }
        for (int r = 0; r < Rows; ++r) {
          const VF weight = hn::Set(kF32, weights[r * args.scratch_stride + base + j]);
          for (int v = 0; v < Vectors; ++v) sums[r][v] = hn::MulAdd(weight, value[v], sums[r][v]);
        }
      }
      continue;
    }
    // A row reads nothing behind its own position: that may be anything.
    for (int r = 0; r < Rows; ++r) {
      const int64_t end = std::min(kPage, rows[r].position - base + 1);
      for (int64_t j = 0; j < end; ++j) {
        const VF weight = hn::Set(kF32, weights[r * args.scratch_stride + base + j]);
        for (int v = 0; v < Vectors; ++v) {
          const VF value = hn::LoadU(kF32, values + j * stride + v * kLanes);
          sums[r][v] = hn::MulAdd(weight, value, sums[r][v]);
        }
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    const VF total = hn::Set(kF32, totals[r]);
    for (int v = 0; v < Vectors; ++v) {
      const int64_t at = column + v * kLanes;
      const int64_t live = std::min(kLanes, args.v_head_dim - at);
      if (live <= 0) break;
      StorePart(hn::Div(sums[r][v], total), kF32, rows[r].out + at, live);
    }
  }
}

template <int Rows>
void RunRows(const PagedArgs& args, const PagedRow* rows) {
  const Range range = RangeOf(args, rows, Rows);
  VF highest[Rows];
  for (VF& one : highest) one = hn::Set(kF32, -std::numeric_limits<float>::infinity());
  int64_t page = range.first_page();
  for (; page + kPagesAtOnce - 1 <= range.last_page(); page += kPagesAtOnce) {
    Scores<Rows, kPagesAtOnce>(args, rows, range, page, highest);
  }
  for (; page <= range.last_page(); ++page) Scores<Rows, 1>(args, rows, range, page, highest);
  float totals[Rows];
  const int64_t count = (range.last_page() + 1) * kPage - range.first;
  for (int r = 0; r < Rows; ++r) {
    totals[r] = Weigh(args.scratch + r * args.scratch_stride, count,
                      hn::GetLane(hn::MaxOfLanes(kF32, highest[r])));
  }
  constexpr int kVectors = kLanes == 1 ? 16 : Rows <= 2 ? 4 : 2;
  const int64_t width = ops::PagedValueStride(args.v_head_dim);
  int64_t column = 0;
  for (; column + kVectors * kLanes <= width; column += kVectors * kLanes) {
    Values<Rows, kVectors>(args, rows, range, totals, column);
  }
  for (; column < width; column += kLanes) Values<Rows, 1>(args, rows, range, totals, column);
}

template <int... Counts>
void Dispatch(const PagedArgs& args, const PagedRow* rows, int64_t count,
              std::integer_sequence<int, Counts...>) {
  ((count == Counts + 1 ? RunRows<Counts + 1>(args, rows) : void()), ...);
}

void Rows(const PagedArgs& args, const PagedRow* rows, int64_t count) {
  Dispatch(args, rows, count, std::make_integer_sequence<int, static_cast<int>(kRows)>());
}

}  // namespace

constexpr PagedKernels kPagedKernels = {kRows, Rows};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const PagedKernels& PagedKernelsFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kPagedKernels); }

}  // namespace reprise::cpu
#endif  // HWY_ONCE

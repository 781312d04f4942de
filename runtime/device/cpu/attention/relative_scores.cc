#include "runtime/device/cpu/attention/relative_scores.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/attention/relative_scores.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"
#include "runtime/device/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
// Rows and vectors of columns that are multiplied at once.
constexpr int64_t kRows = 8;
#if HWY_TARGET == HWY_AVX3
constexpr int kVectors = 3;
#elif HWY_TARGET == HWY_AVX2
constexpr int kVectors = 1;
#else
constexpr int kVectors = 4;
#endif
// Keys whose products with all queries are stored contiguously.
constexpr int64_t kKeys = std::max(kLanes, kRows);
// A tile writes this far past the wanted columns on both sides, for shifted rows and whole vectors.
constexpr int64_t kBeside = 64;
static_assert(kBeside >= kRows + kVectors * kLanes && kBeside % kLanes == 0);
constexpr int64_t kAlign = 16;

constexpr int64_t Up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

// Where things lie in the scratch, in floats.
struct Layout {
  Layout(int64_t queries, int64_t keys, int64_t head_dim)
      : stride(Up(keys, kAlign) + kBeside + kAlign),
        by_distance(Up(queries + keys, kAlign) + 2 * kBeside + kAlign),
        key_row(Up(queries, kAlign) + 2 * kBeside),
        bias(kBeside),
        columns(bias + (queries + kRows) * stride + kBeside),
        key_rows(columns + head_dim * by_distance),
        floats(key_rows + kKeys * key_row + kBeside) {}
  int64_t stride;       // distance between rows of the bias
  int64_t by_distance;  // columns of a table, by distance, with kBeside of zeros before them
  int64_t key_row;      // floats of one key's products with all queries
  int64_t bias, columns, key_rows, floats;
};

// Where the columns of a vector of distances lie in a table, from `base` on.
struct Places {
  int64_t base = 0;
  bool near = false;  // all are needed, and lie within one vector of the table
  HWY_ALIGN int32_t at[kLanes] = {};
};

// Returns the places of distances `first`, `first` - 1 and so on, of which `live` are needed.
Places PlacesOf(const RelativeTable& table, int64_t first, int64_t live) {
  int64_t places[kLanes];
  int64_t lowest = table.width, highest = 0;
  for (int64_t i = 0; i < live; ++i) {
    const int64_t distance = std::clamp(first - i, -table.reach, table.reach);
    places[i] = std::clamp<int64_t>(table.places[distance + table.reach], 0, table.width - 1);
    lowest = std::min(lowest, places[i]);
    highest = std::max(highest, places[i]);
  }
  Places found;
  found.base = std::max<int64_t>(0, std::min(lowest, table.width - kLanes));
  found.near = live == kLanes && table.width >= kLanes && highest - found.base < kLanes;
  for (int64_t i = 0; i < live; ++i) found.at[i] = static_cast<int32_t>(places[i] - found.base);
  return found;
}

// Fills columns [0, count) of `to` + kBeside: the first for distance `first`, each next for one
// less, with zeros on both sides. It goes by a few vectors of columns, row by row: rows of a
// table lie a power of two apart and share few sets of the cache.
void LayOut(const RelativeTable& table, int64_t head_dim, int64_t first, int64_t count,
            int64_t stride, float* HWY_RESTRICT to) {
  const F32 d;
  for (int64_t row = 0; row < head_dim; ++row) {
    float* HWY_RESTRICT line = to + row * stride;
    std::fill(line, line + kBeside, 0.0f);
    std::fill(line + kBeside + count, line + stride, 0.0f);
  }
  constexpr int64_t kAtATime = 16;  // vectors
  for (int64_t begin = 0; begin < count; begin += kAtATime * kLanes) {
    const int64_t end = std::min(count, begin + kAtATime * kLanes);
    Places found[kAtATime];
    for (int64_t at = begin; at < end; at += kLanes) {
      found[(at - begin) / kLanes] = PlacesOf(table, first - at, std::min(kLanes, end - at));
    }
    const float* HWY_RESTRICT columns = table.columns;
    float* HWY_RESTRICT out = to + kBeside;
    for (int64_t row = 0; row < head_dim; ++row, columns += table.width, out += stride) {
      for (int64_t at = begin; at < end; at += kLanes) {
        const Places& of = found[(at - begin) / kLanes];
        if (of.near) {
          const VF near = hn::LoadU(d, columns + of.base);
          hn::StoreU(hn::TableLookupLanes(near, hn::SetTableIndices(d, of.at)), d, out + at);
        } else {
          for (int64_t i = at; i < std::min(at + kLanes, end); ++i) {
            out[i] = columns[of.base + of.at[i - at]];
          }
        }
      }
    }
  }
}

// out[r][c + r] = rows[r] x columns[:, c] for kVecs vectors of columns, added where kAdd.
template <int kVecs, bool kAdd>
HWY_INLINE void Tile(const float* const* rows, int64_t depth, const float* HWY_RESTRICT columns,
                     int64_t stride, float* out, int64_t out_stride) {
  const F32 d;
  VF acc[kRows][kVecs];
  HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::Zero(d);
  }
  for (int64_t i = 0; i < depth; ++i, columns += stride) {
    VF c[kVecs];
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) c[v] = hn::LoadU(d, columns + v * kLanes);
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      const VF x = hn::Set(d, rows[r][i]);
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) Accumulate(acc[r][v], x, c[v]);
    }
  }
  HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
    float* to = out + r * out_stride + r;
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      VF x = acc[r][v];
      if constexpr (kAdd) x = hn::Add(x, hn::LoadU(d, to + v * kLanes));
      hn::StoreU(x, d, to + v * kLanes);
    }
  }
}

template <bool kAdd>
void ShiftedRows(const float* const* rows, int64_t depth, const float* columns, int64_t stride,
                 int64_t count, float* out, int64_t out_stride) {
  int64_t c = 0;
  for (; count - c > (kVectors - 1) * kLanes; c += kVectors * kLanes) {
    Tile<kVectors, kAdd>(rows, depth, columns + c, stride, out + c, out_stride);
  }
  if constexpr (kVectors > 2) {
    for (; count - c > kLanes; c += 2 * kLanes) {
      Tile<2, kAdd>(rows, depth, columns + c, stride, out + c, out_stride);
    }
  }
  for (; c < count; c += kLanes) {
    Tile<1, kAdd>(rows, depth, columns + c, stride, out + c, out_stride);
  }
}

// Sets rows [first, first + kRows) of `count`; rows after the last one repeat it.
void RowsFrom(const float* from, int64_t stride, int64_t first, int64_t count, const float** rows) {
  for (int64_t r = 0; r < kRows; ++r) rows[r] = from + std::min(first + r, count - 1) * stride;
}

// Sets bias[i][j] to the terms of keys for all queries of the block, a vector of keys at a time.
void KeyTerms(const RelativeScoresArgs& args, const Layout& layout, int64_t begin, int64_t queries,
              float* bias, float* columns, float* key_rows) {
  const F32 d;
  // Column c is of query begin + i and key j where c = i - j + keys - 1.
  LayOut(args.k_table, args.head_dim, args.keys - 1 - begin, queries + args.keys - 1,
         layout.by_distance, columns);
  const float* rows[kRows];
  for (int64_t j = 0; j < args.keys; j += kKeys) {
    for (int64_t g = 0; g < kKeys; g += kRows) {
      // Row r of the group begins r columns further left.
      const int64_t first = args.keys - 1 - (j + g + kRows - 1);
      RowsFrom(args.k, args.k_stride, j + g, args.keys, rows);
      ShiftedRows<false>(rows, args.head_dim, columns + kBeside + first, layout.by_distance,
                         queries + kRows - 1, key_rows + g * layout.key_row + kBeside - kRows + 1,
                         layout.key_row);
    }
    const float* lines[kKeys];
    for (int64_t i = 0; i < kKeys; ++i) lines[i] = key_rows + i * layout.key_row + kBeside;
    for (int64_t i = 0; i < kKeys; i += kLanes) {
      TransposeWords(d, lines + i, queries, bias + j + i, layout.stride);
    }
  }
}

// Adds the terms of the queries to the bias.
void QueryTerms(const RelativeScoresArgs& args, const Layout& layout, int64_t begin,
                int64_t queries, float* bias, float* columns) {
  // Column c is of query begin + i and key j where c = j - i + queries - 1.
  LayOut(args.q_table, args.head_dim, begin + queries - 1, queries + args.keys - 1,
         layout.by_distance, columns);
  const float* rows[kRows];
  for (int64_t i = 0; i < queries; i += kRows) {
    const int64_t first = queries - 1 - (i + kRows - 1);
    RowsFrom(args.q + begin * args.q_stride, args.q_stride, i, queries, rows);
    ShiftedRows<true>(rows, args.head_dim, columns + kBeside + first, layout.by_distance,
                      args.keys + kRows - 1, bias + i * layout.stride - kRows + 1, layout.stride);
  }
}

void AddMasks(const RelativeScoresArgs& args, const Layout& layout, int64_t begin, int64_t queries,
              float* bias) {
  if (args.mask == nullptr && args.key_mask == nullptr && args.query_mask == nullptr) return;
  for (int64_t i = 0; i < queries; ++i) {
    float* HWY_RESTRICT row = bias + i * layout.stride;
    if (args.mask != nullptr) {
      const float* HWY_RESTRICT mask = args.mask + (begin + i) * args.mask_stride;
      for (int64_t j = 0; j < args.keys; ++j) row[j] += mask[j];
    }
    if (args.key_mask == nullptr && args.query_mask == nullptr) continue;
    const float of_query = args.query_mask == nullptr ? 0.0f : args.query_mask[begin + i];
    for (int64_t j = 0; j < args.keys; ++j) {
      const float sum = of_query + (args.key_mask == nullptr ? 0.0f : args.key_mask[j]);
      row[j] += std::max(sum, args.lowest_mask);
    }
  }
}

RelativeBias Bias(const RelativeScoresArgs& args, int64_t begin, int64_t end) {
  const int64_t queries = end - begin;
  const Layout layout(queries, args.keys, args.head_dim);
  float* bias = args.scratch + layout.bias;
  float* columns = args.scratch + layout.columns;
  if (args.k_table.columns != nullptr) {
    KeyTerms(args, layout, begin, queries, bias, columns, args.scratch + layout.key_rows);
  } else {
    for (int64_t i = 0; i < queries; ++i) std::fill_n(bias + i * layout.stride, args.keys, 0.0f);
  }
  if (args.q_table.columns != nullptr) QueryTerms(args, layout, begin, queries, bias, columns);
  AddMasks(args, layout, begin, queries, bias);
  return {bias, layout.stride};
}

int64_t ScratchFloats(int64_t queries, int64_t keys, int64_t head_dim) {
  return Layout(queries, keys, head_dim).floats;
}

}  // namespace

constexpr RelativeScoresKernels kRelativeScoresKernels = {Bias, ScratchFloats};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const RelativeScoresKernels& RelativeScoresKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kRelativeScoresKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE

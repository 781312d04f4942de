#include "runtime/device/cpu/movement/plan_copy.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/plan/strided.h"
#include "runtime/device/cpu/simd/interleave.h"
#include "runtime/device/cpu/simd/transpose.h"

namespace reprise::cpu {
namespace {

struct CopyParams {
  Walk<1> walk;
  int64_t offset = 0;  // elements of the input
  int out = 0;
  // Where dim `turned_dim` and not the innermost one has stride 1, the two are copied
  // together, so that both sides use whole cache lines.
  size_t turned_dim = 0;
  Transpose transpose = nullptr;
  const InterleaveKernels* interleave = nullptr;
  int64_t batch_rows = 0;
};

// A dim of fewer elements is not worth tiles.
constexpr int64_t kShortestTile = 8;

template <class T>
void CopyRun(const T* from, int64_t stride, T* to, int64_t count) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }
}

template <class T>
void RunRuns(const LaunchArgs& launch) {
  const auto& p = *static_cast<const CopyParams*>(launch.params);
  const T* from = static_cast<const T*>(launch.operands[0]) + p.offset;
  T* to = static_cast<T*>(launch.operands[p.out]);
  const int64_t stride = p.walk.inner_stride(0);
  const int64_t live = LiveOf(p.walk.elements, p.batch_rows, *launch.frame);
  ForEachRun(p.walk, live, launch.part, launch.parts,
             [&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
               CopyRun(from + offsets[0], stride, to + position, count);
             });
}

// The matrices of a walk: one for each index along the dims except the last and `turned_dim`.
class Matrices {
 public:
  struct Place {
    int64_t in = 0, out = 0;  // elements
  };

  Matrices(const Walk<1>& walk, size_t turned_dim) : walk_(walk), turned_dim_(turned_dim) {
    int64_t stride = 1;
    for (size_t d = walk.dims; d-- > 0;) {
      out_strides_[d] = stride;
      stride *= walk.sizes[d];
      if (d != walk.dims - 1 && d != turned_dim) count_ *= walk.sizes[d];
    }
  }

  int64_t count() const { return count_; }
  // Returns the distance in the result between neighbours along the turned dim.
  int64_t out_row() const { return out_strides_[turned_dim_]; }
  Place At(int64_t matrix) const {
    Place place;
    for (size_t d = walk_.dims - 1; d-- > 0;) {
      if (d == turned_dim_) continue;
      place.in += matrix % walk_.sizes[d] * walk_.strides[0][d];
      place.out += matrix % walk_.sizes[d] * out_strides_[d];
      matrix /= walk_.sizes[d];
    }
    return place;
  }

 private:
  const Walk<1>& walk_;
  const size_t turned_dim_;
  int64_t out_strides_[kMaxWalkDims];
  int64_t count_ = 1;
};

// 16 by 16 bytes, in registers.
inline void CopyByteTile(const uint8_t* from, int64_t step, uint8_t* to, int64_t to_row) {
  constexpr int kSize = 16;
  using Bytes [[gnu::vector_size(kSize)]] = uint8_t;
  Bytes v[kSize], halves[kSize];
  for (int i = 0; i < kSize; ++i) std::memcpy(&v[i], from + i * step, kSize);
  // Each round moves a bit of the place within a vector to the number of the vector.
  for (int round = 0; round < 4; ++round) {
    for (int64_t i = 0; i < kSize / 2; ++i) {
      const Bytes a = v[i], b = v[i + kSize / 2];
      halves[2 * i] =
          __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      halves[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                                  29, 14, 30, 15, 31);
    }
    std::copy(halves, halves + kSize, v);
  }
  for (int i = 0; i < kSize; ++i) std::memcpy(to + i * to_row, &v[i], kSize);
}

// to[r * to_row + c] = from[r + c * step]
template <class T>
void CopyTile(const T* from, int64_t step, int64_t rows, int64_t columns, T* to, int64_t to_row) {
  constexpr int64_t kBytes = 16;
  if (sizeof(T) == 1 && rows >= kBytes && columns >= kBytes) {
    // The last tiles reach back over bytes that are copied already.
    for (int64_t row = 0; row < rows; row += kBytes) {
      const int64_t first = std::min(row, rows - kBytes);
      for (int64_t column = 0; column < columns; column += kBytes) {
        const int64_t c = std::min(column, columns - kBytes);
        CopyByteTile(reinterpret_cast<const uint8_t*>(from + first + c * step), step,
                     reinterpret_cast<uint8_t*>(to + first * to_row + c), to_row);
      }
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[r * to_row + c] = from[r + c * step];
  }
}

template <class T>
void RunTiles(const LaunchArgs& launch) {
  const auto& p = *static_cast<const CopyParams*>(launch.params);
  const T* from = static_cast<const T*>(launch.operands[0]) + p.offset;
  T* to = static_cast<T*>(launch.operands[p.out]);
  constexpr int64_t kTile = 64 / sizeof(T);  // elements of a cache line
  // Several neighbouring lines of the output, where transposing is faster than loading a line.
  constexpr int64_t kStretch = sizeof(T) == sizeof(float) ? 4 * kTile : kTile;
  const Matrices matrices(p.walk, p.turned_dim);
  const int64_t rows = p.walk.sizes[p.turned_dim], columns = p.walk.sizes[p.walk.dims - 1];
  const int64_t in_stride = p.walk.inner_stride(0), out_row = matrices.out_row();
  // About as long as each other, so that none is too short for registers.
  const int64_t bands = (rows + kTile - 1) / kTile, stretches = (columns + kStretch - 1) / kStretch;
  const int64_t live = LiveOf(matrices.count(), p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live * bands, 1, launch.part, launch.parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const Matrices::Place place = matrices.At(unit / bands);
    const int64_t row_begin = unit % bands * rows / bands;
    const int64_t row_end = (unit % bands + 1) * rows / bands;
    for (int64_t stretch = 0; stretch < stretches; ++stretch) {
      const int64_t c0 = stretch * columns / stretches, c1 = (stretch + 1) * columns / stretches;
      const T* tile = from + place.in + row_begin + c0 * in_stride;
      T* result = to + place.out + row_begin * out_row + c0;
      if constexpr (sizeof(T) == sizeof(float)) {
        p.transpose(reinterpret_cast<const float*>(tile), in_stride, c1 - c0, row_end - row_begin,
                    reinterpret_cast<float*>(result), out_row);
      } else {
        CopyTile(tile, in_stride, row_end - row_begin, c1 - c0, result, out_row);
      }
    }
  }
}

// Elements of a plane that a part takes at a time.
constexpr int64_t kPlaneBlock = 4096;
// Shorter planes are not worth it.
constexpr int64_t kShortestPlane = 16;

// copy(place, first, size) for the share of a part of planes of `plane` elements: those from
// `first` on, of the matrix at `place`.
template <class F>
void ForEachPlaneBlock(const CopyParams& p, const LaunchArgs& launch, const Matrices& matrices,
                       int64_t plane, F copy) {
  const int64_t blocks = (plane + kPlaneBlock - 1) / kPlaneBlock;
  const int64_t live = LiveOf(matrices.count(), p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live * blocks, 1, launch.part, launch.parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t first = unit % blocks * kPlaneBlock;
    copy(matrices.At(unit / blocks), first, std::min(kPlaneBlock, plane - first));
  }
}

// Copies where the turned dim is a few planes, side by side in the input.
template <class T>
void RunApart(const LaunchArgs& launch) {
  const auto& p = *static_cast<const CopyParams*>(launch.params);
  const T* from = static_cast<const T*>(launch.operands[0]) + p.offset;
  T* to = static_cast<T*>(launch.operands[p.out]);
  const Matrices matrices(p.walk, p.turned_dim);
  const int64_t planes = p.walk.sizes[p.turned_dim];
  ForEachPlaneBlock(p, launch, matrices, p.walk.sizes[p.walk.dims - 1],
                    [&](const Matrices::Place& place, int64_t first, int64_t size) {
                      p.interleave->apart(from + place.in + first * planes, planes, size,
                                          to + place.out + first, matrices.out_row());
                    });
}

// Copies where the last dim holds a few planes, side by side in the output.
template <class T>
void RunTogether(const LaunchArgs& launch) {
  const auto& p = *static_cast<const CopyParams*>(launch.params);
  const T* from = static_cast<const T*>(launch.operands[0]) + p.offset;
  T* to = static_cast<T*>(launch.operands[p.out]);
  const Matrices matrices(p.walk, p.turned_dim);
  const int64_t planes = p.walk.sizes[p.walk.dims - 1];
  ForEachPlaneBlock(p, launch, matrices, p.walk.sizes[p.turned_dim],
                    [&](const Matrices::Place& place, int64_t first, int64_t size) {
                      p.interleave->together(from + place.in + first, p.walk.inner_stride(0),
                                             planes, size, to + place.out + first * planes);
                    });
}

enum class Way : uint8_t { kRuns, kTiles, kApart, kTogether };

// Returns how `params.walk` is copied; fills `params.turned_dim` where there is one.
Way WayOf(CopyParams& params) {
  const Walk<1>& walk = params.walk;
  const int64_t in_stride = walk.inner_stride(0);
  if (in_stride <= 1 || walk.dims < 2 || walk.elements == 0) return Way::kRuns;
  const size_t last = walk.dims - 1;
  Way way = Way::kRuns;
  for (size_t d = 0; d < last; ++d) {
    if (walk.strides[0][d] != 1 || walk.sizes[d] < 2) continue;
    const bool apart = walk.sizes[d] == in_stride && in_stride <= kMostPlanes &&
                       walk.sizes[last] >= kShortestPlane;
    const bool together =
        d + 1 == last && walk.sizes[last] <= kMostPlanes && walk.sizes[d] >= kShortestPlane;
    if (!apart && !together && walk.sizes[d] < kShortestTile) continue;
    params.turned_dim = d;
    way = apart ? Way::kApart : together ? Way::kTogether : Way::kTiles;
  }
  return way;
}

template <class T>
KernelFn FunctionOf(Way way) {
  switch (way) {
    case Way::kRuns:
      return RunRuns<T>;
    case Way::kTiles:
      return RunTiles<T>;
    case Way::kApart:
      return RunApart<T>;
    case Way::kTogether:
      return RunTogether<T>;
  }
  return nullptr;
}

}  // namespace

std::vector<Candidate> PlanCopy(const CpuTarget& target, const NodeView& node,
                                absl::Span<const int64_t> shape, const Shape& strides,
                                int64_t offset) {
  const auto walk = MakeWalk<1>(shape, {strides});
  if (!walk.has_value()) return {};
  CopyParams params;
  params.walk = *walk;
  params.offset = offset;
  params.out = static_cast<int>(node.num_inputs());
  params.transpose = TransposeFor(target.isa);
  const Way way = WayOf(params);
  const size_t bytes = DTypeSize(node.out_dtype());
  KernelFn run = nullptr;
  switch (bytes) {
    case 1:
      run = FunctionOf<uint8_t>(way);
      break;
    case 2:
      run = FunctionOf<uint16_t>(way);
      break;
    case 4:
      run = FunctionOf<uint32_t>(way);
      break;
    case 8:
      run = FunctionOf<uint64_t>(way);
      break;
    default:
      return {};
  }
  params.interleave = &InterleaveKernelsFor(target.isa, bytes);
  // Matrices along the outermost dim cross the border between live rows and others.
  if (way == Way::kRuns || (params.turned_dim > 0 && walk->dims > 2)) {
    params.batch_rows = node.batch_rows();
  }
  Candidate candidate = MakeCandidate(target, node, "copy", run, params, 0);
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu

// Ops that move elements without looking at them: Transpose, Slice, Expand, Tile, DepthToSpace,
// SpaceToDepth, Concat, Split.
#include <emmintrin.h>

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/strided.h"
#include "runtime/device/cpu/transpose.h"

namespace reprise::cpu {
namespace {

// The output, dense, from an input with any strides.
struct CopyParams {
  Walk<1> walk;
  int64_t offset = 0;  // elements of the input
  size_t size = 0;     // bytes of an element
  int out = 0;
  // Where the innermost stride is not 1 but that of dim `tile_dim` is: the pair is copied in
  // tiles, so that both sides use whole cache lines.
  bool tiled = false;
  size_t tile_dim = 0;
  Transpose transpose = nullptr;
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

// The same of 16 by 16 bytes, in registers.
inline void CopyByteTile(const uint8_t* from, int64_t step, uint8_t* to, int64_t to_row) {
  constexpr int kSize = 16;
  __m128i v[kSize], halves[kSize];
  for (int i = 0; i < kSize; ++i) {
    v[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * step));
  }
  // Each round moves a bit of the place within a vector to the number of the vector.
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < kSize / 2; ++i) {
      halves[2 * i] = _mm_unpacklo_epi8(v[i], v[i + kSize / 2]);
      halves[2 * i + 1] = _mm_unpackhi_epi8(v[i], v[i + kSize / 2]);
    }
    std::copy(halves, halves + kSize, v);
  }
  for (int i = 0; i < kSize; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * to_row), v[i]);
  }
}

// to[r * to_row + c] = from[r + c * step]
template <class T>
void CopyTile(const T* from, int64_t step, int64_t rows, int64_t columns, T* to, int64_t to_row) {
  constexpr int64_t kBytes = 16;
  if (sizeof(T) == 1 && rows >= kBytes && columns >= kBytes) {
    // The last ones reach back over what is copied.
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
void CopyTiled(const CopyParams& p, const T* from, T* to, int part, int parts) {
  constexpr int64_t kTile = 64 / sizeof(T);  // of a cache line
  // Several neighbouring lines of the output, where registers turn a tile faster than a line comes.
  constexpr int64_t kStretch = sizeof(T) == sizeof(float) ? 4 * kTile : kTile;
  const Walk<1>& walk = p.walk;
  const size_t last = walk.dims - 1;
  int64_t out_strides[kMaxWalkDims];
  int64_t out_stride = 1, others = 1;
  for (size_t d = walk.dims; d-- > 0;) {
    out_strides[d] = out_stride;
    out_stride *= walk.sizes[d];
    if (d != last && d != p.tile_dim) others *= walk.sizes[d];
  }
  const int64_t rows = walk.sizes[p.tile_dim], columns = walk.sizes[last];
  const int64_t in_stride = walk.strides[0][last], out_row = out_strides[p.tile_dim];
  // About as long as each other, so that none is too short for registers.
  const int64_t bands = (rows + kTile - 1) / kTile, stretches = (columns + kStretch - 1) / kStretch;
  const ItemRange range = RangeOfPart(others * bands, 1, part, parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    int64_t rest = unit / bands, in = 0, out = 0;
    for (size_t d = last; d-- > 0;) {
      if (d == p.tile_dim) continue;
      in += rest % walk.sizes[d] * walk.strides[0][d];
      out += rest % walk.sizes[d] * out_strides[d];
      rest /= walk.sizes[d];
    }
    const int64_t row_begin = unit % bands * rows / bands;
    const int64_t row_end = (unit % bands + 1) * rows / bands;
    for (int64_t stretch = 0; stretch < stretches; ++stretch) {
      const int64_t c0 = stretch * columns / stretches, c1 = (stretch + 1) * columns / stretches;
      const T* tile = from + in + row_begin + c0 * in_stride;
      T* result = to + out + row_begin * out_row + c0;
      if constexpr (sizeof(T) == sizeof(float)) {
        p.transpose(reinterpret_cast<const float*>(tile), in_stride, c1 - c0, row_end - row_begin,
                    reinterpret_cast<float*>(result), out_row);
      } else {
        CopyTile(tile, in_stride, row_end - row_begin, c1 - c0, result, out_row);
      }
    }
  }
}

template <class T>
void RunCopy(const LaunchArgs& launch) {
  const auto& p = *static_cast<const CopyParams*>(launch.params);
  const T* from = static_cast<const T*>(launch.operands[0]) + p.offset;
  T* to = static_cast<T*>(launch.operands[p.out]);
  if (p.tiled) {
    CopyTiled(p, from, to, launch.part, launch.parts);
    return;
  }
  const int64_t stride = p.walk.inner_stride(0);
  const int64_t live = LiveOf(p.walk.elements, p.batch_rows, *launch.frame);
  ForEachRun(p.walk, live, launch.part, launch.parts,
             [&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
               CopyRun(from + offsets[0], stride, to + position, count);
             });
}

std::vector<Candidate> Copy(const CpuTarget& target, const NodeView& node,
                            absl::Span<const int64_t> shape, const Shape& strides, int64_t offset) {
  const auto walk = MakeWalk<1>(shape, {strides});
  if (!walk.has_value()) return {};
  CopyParams params;
  params.walk = *walk;
  params.offset = offset;
  params.out = static_cast<int>(node.num_inputs());
  params.transpose = TransposeFor(target.isa);
  if (walk->inner_stride(0) > 1) {
    for (size_t d = 0; d + 1 < walk->dims; ++d) {
      if (walk->strides[0][d] != 1 || walk->sizes[d] < kShortestTile) continue;
      params.tiled = true;
      params.tile_dim = d;
    }
  }
  KernelFn run = nullptr;
  switch (DTypeSize(node.out_dtype())) {
    case 1:
      run = RunCopy<uint8_t>;
      break;
    case 2:
      run = RunCopy<uint16_t>;
      break;
    case 4:
      run = RunCopy<uint32_t>;
      break;
    case 8:
      run = RunCopy<uint64_t>;
      break;
    default:
      return {};
  }
  // Tiles cross the border between live rows and others.
  if (!params.tiled) params.batch_rows = node.batch_rows();
  Candidate candidate = MakeCandidate(target, node, "copy", run, params, 0);
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

// Blocks of bytes between one tensor with the axis whole and several with a piece of it each.
struct PiecesParams {
  bool join = false;  // Concat, else Split
  int64_t outer = 1;
  int64_t whole_bytes = 0;  // of one row of the whole
  int whole_operand = 0;
  int first_piece = 0;
  int pieces = 0;
  int64_t piece_bytes[kMaxOperands] = {};  // of one row of each
  int64_t batch_rows = 0;
};

void RunPieces(const LaunchArgs& launch) {
  const auto& p = *static_cast<const PiecesParams*>(launch.params);
  auto* whole = static_cast<std::byte*>(launch.operands[p.whole_operand]);
  const int64_t outer = LiveOf(p.outer, p.batch_rows, *launch.frame);
  for (int i = 0; i < p.pieces; ++i) {
    const int64_t bytes = p.piece_bytes[i];
    auto* piece = static_cast<std::byte*>(launch.operands[p.first_piece + i]);
    // A left-out output of Split.
    if (piece != nullptr && bytes > 0) {
      // Rows to parts; of a single row, bytes.
      const bool one = p.outer == 1;
      const ItemRange rows =
          one ? ItemRange{0, 1} : RangeOfPart(outer, 1, launch.part, launch.parts);
      const ItemRange span =
          one ? RangeOfPart(bytes, 4096, launch.part, launch.parts) : ItemRange{0, bytes};
      for (int64_t row = rows.begin; row < rows.end && span.begin < span.end; ++row) {
        std::byte* a = whole + row * p.whole_bytes + span.begin;
        std::byte* b = piece + row * bytes + span.begin;
        const size_t count = static_cast<size_t>(span.end - span.begin);
        std::memcpy(p.join ? a : b, p.join ? b : a, count);
      }
    }
    whole += bytes;
  }
}

Candidate Pieces(const CpuTarget& target, const NodeView& node, absl::string_view name,
                 PiecesParams params) {
  params.batch_rows = node.batch_rows();
  Candidate candidate = MakeCandidate(target, node, name, RunPieces, params, 0);
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return candidate;
}

}  // namespace

std::vector<Candidate> PlanTranspose(const CpuTarget& target, const NodeView& node) {
  const Shape in_strides = Strides(node.shape(0));
  std::vector<int64_t> perm = node.attributes().Ints("perm");
  if (perm.empty()) {
    for (int64_t d = node.rank(0); d-- > 0;) perm.push_back(d);
  }
  Shape strides;
  for (int64_t axis : perm) {
    const absl::StatusOr<int64_t> known = NormalizeAxis(axis, node.rank(0));
    if (!known.ok()) return {};
    strides.push_back(in_strides[*known]);
  }
  return Copy(target, node, node.out_shape(), strides, 0);
}

std::vector<Candidate> PlanSlice(const CpuTarget& target, const NodeView& node) {
  const Shape& shape = node.shape(0);
  std::vector<int64_t> arguments[4];  // starts, ends, axes, steps
  for (size_t i = 0; i < 4; ++i) {
    if (!node.has_input(i + 1)) continue;
    const Tensor* values = node.constant(i + 1);
    if (values == nullptr) return {};
    absl::StatusOr<std::vector<int64_t>> integers = values->ToInt64s();
    if (!integers.ok()) return {};
    arguments[i] = *std::move(integers);
  }
  Shape strides = Strides(shape);
  int64_t offset = 0;
  for (size_t i = 0; i < arguments[0].size(); ++i) {
    const absl::StatusOr<int64_t> axis =
        NormalizeAxis(node.has_input(3) ? arguments[2][i] : static_cast<int64_t>(i), node.rank(0));
    if (!axis.ok()) return {};
    const int64_t size = shape[*axis];
    const int64_t step = node.has_input(4) ? arguments[3][i] : 1;
    // As ONNX clamps: a start before the first element is the first, one behind the last is behind
    // it going up and the last going down.
    int64_t start = arguments[0][i];
    if (start < 0) start += size;
    start = std::clamp<int64_t>(start, 0, step > 0 ? size : std::max<int64_t>(0, size - 1));
    if (node.out_shape()[*axis] > 0) offset += start * strides[*axis];
    strides[*axis] *= step;
  }
  return Copy(target, node, node.out_shape(), strides, offset);
}

std::vector<Candidate> PlanExpand(const CpuTarget& target, const NodeView& node) {
  return Copy(target, node, node.out_shape(),
              ops::BroadcastStrides(node.shape(0), node.out_shape()), 0);
}

std::vector<Candidate> PlanTile(const CpuTarget& target, const NodeView& node) {
  // Seen as [repeat, size, repeat, size, ...], the input repeating with stride 0.
  const Shape in_strides = Strides(node.shape(0));
  Shape sizes, strides;
  for (size_t d = 0; d < in_strides.size(); ++d) {
    const int64_t size = node.shape(0)[d];
    sizes.push_back(size == 0 ? 0 : node.out_shape()[d] / size);
    strides.push_back(0);
    sizes.push_back(size);
    strides.push_back(in_strides[d]);
  }
  return Copy(target, node, sizes, strides, 0);
}

std::vector<Candidate> PlanBlocks(const CpuTarget& target, const NodeView& node) {
  const bool to_space = node.op() == "DepthToSpace";
  const bool depth_first = node.attributes().String("mode", "DCR") == "DCR";
  const int64_t block = node.attributes().Int("blocksize", 1);
  const Shape& in = node.shape(0);
  const Shape& deep = to_space ? in : node.out_shape();
  const int64_t batch = deep[0], height = deep[2], width = deep[3];
  const int64_t depth = deep[1] / (block * block);
  // Both tensors are [batch, depth, height, block, width, block] in some order; the strides of the
  // deep one, by that order.
  const int64_t plane = height * width;
  const int64_t of_depth = depth_first ? plane : block * block * plane;
  const int64_t of_block = depth_first ? depth * plane : plane;
  if (to_space) {
    return Copy(target, node, {batch, depth, height, block, width, block},
                {depth * block * block * plane, of_depth, width, block * of_block, 1, of_block}, 0);
  }
  // Of the wide one, in the order of the deep one.
  const int64_t line = width * block, wide_plane = height * block * line;
  if (depth_first) {
    return Copy(target, node, {batch, block, block, depth, height, width},
                {depth * wide_plane, line, 1, wide_plane, block * line, block}, 0);
  }
  return Copy(target, node, {batch, depth, block, block, height, width},
              {depth * wide_plane, wide_plane, line, 1, block * line, block}, 0);
}

std::vector<Candidate> PlanConcat(const CpuTarget& target, const NodeView& node) {
  const absl::Span<const int64_t> shape = node.out_shape();
  const absl::StatusOr<int64_t> axis =
      NormalizeAxis(node.attributes().Int("axis", 0), static_cast<int64_t>(shape.size()));
  if (!axis.ok() || node.num_inputs() >= kMaxOperands) return {};
  PiecesParams params;
  params.join = true;
  params.outer = NumElements(shape.first(*axis));
  const int64_t inner =
      NumElements(shape.subspan(*axis + 1)) * static_cast<int64_t>(DTypeSize(node.out_dtype()));
  params.whole_bytes = shape[*axis] * inner;
  params.whole_operand = static_cast<int>(node.num_inputs());
  params.pieces = static_cast<int>(node.num_inputs());
  for (int i = 0; i < params.pieces; ++i) params.piece_bytes[i] = node.shape(i)[*axis] * inner;
  return {Pieces(target, node, "concat", params)};
}

std::vector<Candidate> PlanSplit(const CpuTarget& target, const NodeView& node) {
  const absl::Span<const int64_t> shape = node.shape(0);
  const absl::StatusOr<int64_t> axis =
      NormalizeAxis(node.attributes().Int("axis", 0), node.rank(0));
  if (!axis.ok() || node.num_outputs() + 2 >= kMaxOperands) return {};
  PiecesParams params;
  params.outer = NumElements(shape.first(*axis));
  const int64_t inner =
      NumElements(shape.subspan(*axis + 1)) * static_cast<int64_t>(DTypeSize(node.dtype(0)));
  params.whole_bytes = shape[*axis] * inner;
  params.first_piece = static_cast<int>(node.num_inputs());
  params.pieces = static_cast<int>(node.num_outputs());
  for (int i = 0; i < params.pieces; ++i) {
    // Without its shape the place of the pieces behind it is not known.
    if (!node.has_output(i)) return {};
    params.piece_bytes[i] = node.out_shape(i)[*axis] * inner;
  }
  return {Pieces(target, node, "split", params)};
}

}  // namespace reprise::cpu

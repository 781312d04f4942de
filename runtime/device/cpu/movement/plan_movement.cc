// Ops that move elements without looking at them: Transpose, Slice, Expand, Tile, DepthToSpace,
// SpaceToDepth, Concat, Split.
#include <algorithm>

#include "runtime/device/cpu/movement/movement_plans.h"
#include "runtime/device/cpu/movement/plan_copy.h"
#include "runtime/device/cpu/simd/copy_bytes.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/movement/concat_op.h"

namespace reprise::cpu {
namespace {

// Copies blocks of bytes between a tensor that has the whole axis and several with a piece each.
struct PiecesParams {
  bool join = false;  // Concat, else Split
  int64_t outer = 1;
  int64_t whole_bytes = 0;  // bytes of one row of the whole
  int whole_operand = 0;
  int first_piece = 0;
  int pieces = 0;
  int64_t piece_bytes[kMaxOperands] = {};  // bytes of one row of each piece
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
      std::byte* const a = whole + rows.begin * p.whole_bytes + span.begin;
      std::byte* const b = piece + rows.begin * bytes + span.begin;
      const int64_t count = rows.end - rows.begin, width = span.end - span.begin;
      if (p.join) {
        CopyRows(b, bytes, a, p.whole_bytes, width, count);
      } else {
        CopyRows(a, p.whole_bytes, b, bytes, width, count);
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
  return PlanCopy(target, node, node.out_shape(), strides, 0);
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
    // ONNX clamps this way: a start before the first element is the first; a start after the last
    // is after it going up, and the last going down.
    int64_t start = arguments[0][i];
    if (start < 0) start += size;
    start = std::clamp<int64_t>(start, 0, step > 0 ? size : std::max<int64_t>(0, size - 1));
    if (node.out_shape()[*axis] > 0) offset += start * strides[*axis];
    strides[*axis] *= step;
  }
  return PlanCopy(target, node, node.out_shape(), strides, offset);
}

std::vector<Candidate> PlanExpand(const CpuTarget& target, const NodeView& node) {
  return PlanCopy(target, node, node.out_shape(),
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
  return PlanCopy(target, node, sizes, strides, 0);
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
    return PlanCopy(target, node, {batch, depth, height, block, width, block},
                    {depth * block * block * plane, of_depth, width, block * of_block, 1, of_block},
                    0);
  }
  // The strides of the wide tensor, in the order of the deep tensor's dims.
  const int64_t line = width * block, wide_plane = height * block * line;
  if (depth_first) {
    return PlanCopy(target, node, {batch, block, block, depth, height, width},
                    {depth * wide_plane, line, 1, wide_plane, block * line, block}, 0);
  }
  return PlanCopy(target, node, {batch, depth, block, block, height, width},
                  {depth * wide_plane, wide_plane, line, 1, block * line, block}, 0);
}

std::vector<Candidate> PlanConcat(const CpuTarget& target, const NodeView& node) {
  const absl::Span<const int64_t> shape = node.out_shape();
  const absl::StatusOr<int64_t> axis =
      NormalizeAxis(ConcatOp::From(node.attributes()).axis, static_cast<int64_t>(shape.size()));
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
      NormalizeAxis(ConcatOp::From(node.attributes()).axis, node.rank(0));
  if (!axis.ok() || node.num_outputs() + 2 >= kMaxOperands) return {};
  PiecesParams params;
  params.outer = NumElements(shape.first(*axis));
  const int64_t inner =
      NumElements(shape.subspan(*axis + 1)) * static_cast<int64_t>(DTypeSize(node.dtype(0)));
  params.whole_bytes = shape[*axis] * inner;
  params.first_piece = static_cast<int>(node.num_inputs());
  params.pieces = static_cast<int>(node.num_outputs());
  for (int i = 0; i < params.pieces; ++i) {
    // Without its shape the place of the pieces after it is not known.
    if (!node.has_output(i)) return {};
    params.piece_bytes[i] = node.out_shape(i)[*axis] * inner;
  }
  return {Pieces(target, node, "split", params)};
}

}  // namespace reprise::cpu

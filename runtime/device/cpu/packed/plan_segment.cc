// Packed tokens: attention within segments, and ops between tokens and their segments.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/elementwise/rows.h"
#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/device/cpu/packed/packed_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/attention/segment.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::cpu {
namespace {

using ops::SegmentAt;
using ops::SegmentRange;

constexpr size_t kMask = SegmentAttentionOp::kMask, kBias = SegmentAttentionOp::kBias,
                 kSegments = SegmentAttentionOp::kSegments, kPlaces = SegmentAttentionOp::kPlaces;

struct SegmentAttentionParams {
  const AttentionKernels* kernels = nullptr;
  const AttentionKernels* tile_kernels = nullptr;  // used for segments that suit them; or null
  bool rounding = false;                           // tile_kernels take all segments
  AttentionArgs args;  // strides and sizes; the pointers point to token 0, head 0
  int64_t tokens = 0, segments = 0, heads = 0;
  int64_t longest = 0;                 // tokens of a segment that the scratch holds
  int k = 0, v = 0;                    // operands; q is operand 0
  int64_t k_offset = 0, v_offset = 0;  // elements, in a fused product
  bool has_mask = false, mask_is_bool = false, has_bias = false;
  bool one_a_segment = false;  // q and out have one row a segment
  int64_t bias_head = 0;       // elements from one head's bias to the next
  int out = 0, workspace = 0;
  int64_t scratch_floats = 0;
  int scratch_parts = 0;
  int64_t block = 0;  // queries of a unit
};

SegmentRange BoundedSegment(const SegmentAttentionParams& p, const int32_t* segments, int64_t s) {
  SegmentRange segment = SegmentAt(segments, s, p.tokens);
  segment.end = std::min(segment.end, segment.begin + p.longest);
  return segment;
}

int64_t QueriesOf(const SegmentAttentionParams& p, const SegmentRange& segment) {
  return p.one_a_segment ? std::min<int64_t>(segment.size(), 1) : segment.size();
}

int64_t BlocksOf(const SegmentAttentionParams& p, const SegmentRange& segment) {
  return (QueriesOf(p, segment) + p.block - 1) / p.block;
}

// Runs units [first, last) of segment `s`: blocks of queries, head by head. The units of one head
// are one call, so that its keys are fetched once.
void RunUnits(const LaunchArgs& launch, const SegmentAttentionParams& p, int64_t s,
              const SegmentRange& segment, int64_t first, int64_t last) {
  AttentionArgs args = p.args;
  args.keys = segment.size();
  args.scratch = static_cast<float*>(launch.operands[p.workspace]) + launch.part * p.scratch_floats;
  const auto at = [&](int operand, int64_t row, int64_t offset, int64_t stride) {
    return static_cast<float*>(launch.operands[operand]) + offset + row * stride;
  };
  const int64_t queries = QueriesOf(p, segment);
  const int64_t query_row = p.one_a_segment ? s : segment.begin;
  int64_t place = 0;
  if (p.one_a_segment) {
    place = std::clamp<int64_t>(static_cast<const int64_t*>(launch.operands[kPlaces])[s], 0,
                                segment.size() - 1);
  }
  if (p.has_mask && p.mask_is_bool) {
    args.keep = static_cast<const uint8_t*>(launch.operands[kMask]) + segment.begin;
  } else if (p.has_mask) {
    args.key_bias = static_cast<const float*>(launch.operands[kMask]) + segment.begin;
  }
  // By nothing but the segment's own length, so that its batch-mates do not matter.
  const bool tiles = p.tile_kernels != nullptr &&
                     (p.rounding || SuitsTileAttention(queries, segment.size(), args.head_dim));
  const AttentionKernels& kernels = tiles ? *p.tile_kernels : *p.kernels;
  const int64_t blocks = BlocksOf(p, segment);
  for (int64_t unit = first; unit < last;) {
    const int64_t head = unit / blocks, begin = unit % blocks;
    const int64_t end = std::min(blocks, begin + last - unit);
    args.q = at(0, query_row, head * args.head_dim, args.q_stride);
    args.k = at(p.k, segment.begin, p.k_offset + head * args.head_dim, args.k_stride);
    args.v = at(p.v, segment.begin, p.v_offset + head * args.v_head_dim, args.v_stride);
    args.out = at(p.out, query_row, head * args.v_head_dim, args.out_stride);
    if (p.has_bias) args.bias = at(kBias, place, head * p.bias_head, args.bias_stride);
    kernels.rows(args, begin * p.block, std::min(queries, end * p.block));
    unit += end - begin;
  }
}

// Clears empty segments: nothing attends there, and ops over rows of segments read them all.
void ClearEmptySegments(const LaunchArgs& launch, const SegmentAttentionParams& p) {
  const auto* segments = static_cast<const int32_t*>(launch.operands[kSegments]);
  auto* out = static_cast<float*>(launch.operands[p.out]);
  for (int64_t s = 0; s < p.segments; ++s) {
    if (BoundedSegment(p, segments, s).size() > 0) continue;
    std::fill_n(out + s * p.args.out_stride, p.heads * p.args.v_head_dim, 0.0f);
  }
}

// Units cost as many as the keys that they look at.
void RunSegmentAttention(const LaunchArgs& launch) {
  const auto& p = *static_cast<const SegmentAttentionParams*>(launch.params);
  const int parts = PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  const auto* segments = static_cast<const int32_t*>(launch.operands[kSegments]);
  if (p.one_a_segment && launch.part == 0) ClearEmptySegments(launch, p);
  const auto units_of = [&](int64_t s) -> CostedUnits {
    const SegmentRange segment = BoundedSegment(p, segments, s);
    return {p.heads * BlocksOf(p, segment), segment.size(), s + 1};
  };
  ForShareOfCost(p.segments, launch.part, parts, units_of,
                 [&](int64_t s, int64_t first, int64_t last) {
                   RunUnits(launch, p, s, BoundedSegment(p, segments, s), first, last);
                 });
}

struct ReduceParams {
  const RowKernels* kernels = nullptr;
  int64_t tokens = 0, segments = 0, row = 0;
  bool mean = false;
  Fold fold = Fold::kSum;
};

// Segments times blocks of columns, so that one long segment still keeps many parts busy.
constexpr int64_t kReduceColumns = 64;

void RunReduce(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ReduceParams*>(launch.params);
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* segments = static_cast<const int32_t*>(launch.operands[1]);
  auto* y = static_cast<float*>(launch.operands[2]);
  const int64_t blocks = (p.row + kReduceColumns - 1) / kReduceColumns;
  const ItemRange range = RangeOfPart(p.segments * blocks, 1, launch.part, launch.parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const SegmentRange segment = SegmentAt(segments, i / blocks, p.tokens);
    const int64_t column = i % blocks * kReduceColumns;
    const int64_t columns = std::min(kReduceColumns, p.row - column);
    float* to = y + i / blocks * p.row + column;
    if (segment.size() == 0) {
      std::fill_n(to, columns, 0.0f);
      continue;
    }
    const float* from = x + segment.begin * p.row + column;
    if (p.fold != Fold::kSum) {
      p.kernels->fold_columns(p.fold, from, p.row, segment.size(), columns, to);
      continue;
    }
    const float scale = p.mean ? 1.0f / static_cast<float>(segment.size()) : 1.0f;
    p.kernels->weighted_sum(from, p.row, nullptr, segment.size(), columns, scale, to);
  }
}

// Segment by segment, whatever the dtype: rows of bytes.
struct MoveParams {
  int64_t tokens = 0, segments = 0;
  size_t row_bytes = 0;
  int out = 0;
};

enum class Move { kSpread, kFirst, kLast };

template <Move kMove>
void RunMove(const LaunchArgs& launch) {
  const auto& p = *static_cast<const MoveParams*>(launch.params);
  const auto* from = static_cast<const std::byte*>(launch.operands[0]);
  const auto* segments = static_cast<const int32_t*>(launch.operands[1]);
  auto* to = static_cast<std::byte*>(launch.operands[p.out]);
  const ItemRange range = RangeOfPart(p.segments, 1, launch.part, launch.parts);
  for (int64_t s = range.begin; s < range.end; ++s) {
    const SegmentRange segment = SegmentAt(segments, s, p.tokens);
    if constexpr (kMove == Move::kSpread) {
      for (int64_t t = segment.begin; t < segment.end; ++t) {
        std::memcpy(to + t * p.row_bytes, from + s * p.row_bytes, p.row_bytes);
      }
    } else if (segment.size() > 0) {
      const int64_t token = kMove == Move::kFirst ? segment.begin : segment.end - 1;
      std::memcpy(to + s * p.row_bytes, from + token * p.row_bytes, p.row_bytes);
    } else {
      std::memset(to + s * p.row_bytes, 0, p.row_bytes);
    }
  }
}

struct CumSumParams {
  int64_t tokens = 0, segments = 0, row = 0;
  bool exclusive = false, reverse = false;
};

template <class T>
void RunCumSum(const LaunchArgs& launch) {
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  const auto& p = *static_cast<const CumSumParams*>(launch.params);
  const auto* x = static_cast<const T*>(launch.operands[0]);
  const auto* segments = static_cast<const int32_t*>(launch.operands[1]);
  auto* y = static_cast<T*>(launch.operands[2]);
  // After the last segment: positions are counted with sums, and looked up in tables.
  if (launch.part == 0 && p.tokens > 0) {
    const int64_t end = p.segments == 0 ? 0 : SegmentAt(segments, p.segments - 1, p.tokens).end;
    std::fill(y + end * p.row, y + p.tokens * p.row, T(0));
  }
  const ItemRange range = RangeOfPart(p.segments, 1, launch.part, launch.parts);
  for (int64_t s = range.begin; s < range.end; ++s) {
    const SegmentRange segment = SegmentAt(segments, s, p.tokens);
    for (int64_t i = 0; i < p.row; ++i) {
      Sum sum = 0;
      for (int64_t step = 0; step < segment.size(); ++step) {
        const int64_t t = p.reverse ? segment.end - 1 - step : segment.begin + step;
        const Sum value = static_cast<Sum>(x[t * p.row + i]);
        if (!p.exclusive) sum += value;
        y[t * p.row + i] = static_cast<T>(sum);
        if (p.exclusive) sum += value;
      }
    }
  }
}

}  // namespace

std::vector<Candidate> PlanSegmentAttention(const CpuTarget& target, const NodeView& node) {
  const AttentionKernels& attention = AttentionKernelsFor(target.isa);
  const Attributes& attributes = node.attributes();
  SegmentAttentionParams p;
  p.kernels = &attention;
  p.tile_kernels = target.one_order ? nullptr : TileAttentionKernelsFor(target.isa);
  if (RoundsToBf16(node) && RoundingAttentionKernelsFor(target.isa) != nullptr) {
    p.tile_kernels = RoundingAttentionKernelsFor(target.isa);
    p.rounding = true;
  }
  const auto op = SegmentAttentionOp::From(attributes);
  p.heads = op.num_heads;
  const Shape& q = node.shape(0);
  p.one_a_segment = node.has_input(kPlaces);
  p.tokens = p.one_a_segment ? node.shape(1)[0] : q[0];
  p.segments = node.shape(kSegments)[0] - 1;
  const int64_t longest = op.longest;
  p.longest = longest > 0 ? std::min(longest, p.tokens) : p.tokens;
  const int64_t out_width = node.out_shape()[1];
  AttentionArgs& args = p.args;
  args.v_head_dim = out_width / p.heads;
  args.out_stride = out_width;
  if (op.packed_qkv) {
    args.head_dim = args.v_head_dim;
    args.q_stride = args.k_stride = args.v_stride = q[1];
    p.k_offset = out_width;
    p.v_offset = 2 * out_width;
  } else {
    args.head_dim = q[1] / p.heads;
    args.q_stride = args.k_stride = q[1];
    args.v_stride = out_width;
    p.k = 1;
    p.v = 2;
  }
  args.scale = op.scale;
  args.zero_when_masked = op.nan_to_zero;
  args.one_order = RoundsToBf16(node);
  p.has_mask = node.has_input(kMask);
  p.mask_is_bool = p.has_mask && node.dtype(kMask) == DType::kBool;
  p.has_bias = node.has_input(kBias);
  if (p.has_bias && p.has_mask && !p.mask_is_bool) {
    args.lowest_bias = attributes.Float("lowest", args.lowest_bias);
  }
  if (p.has_bias) {
    const Shape& bias = node.shape(kBias);
    // Beyond the bias its last row and column hold: left to the reference.
    if (bias[1] < p.longest) return {};
    args.bias_stride = bias[2];
    p.bias_head = bias[0] == 1 ? 0 : bias[1] * bias[2];
  }
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = p.out + 1;
  int64_t scratch_floats = attention.scratch_floats(p.longest, args.head_dim, args.v_head_dim);
  if (p.tile_kernels != nullptr) {
    const int64_t keys = p.rounding ? p.longest : std::min(p.longest, kMostTileAttentionKeys);
    scratch_floats = std::max(scratch_floats,
                              p.tile_kernels->scratch_floats(keys, args.head_dim, args.v_head_dim));
  }
  p.scratch_floats = static_cast<int64_t>(AlignUp(scratch_floats, 16));
  p.scratch_parts = target.scratch_parts;
  p.block = 2 * attention.query_block;

  // The estimate assumes that the tokens form segments of the longest size.
  const int64_t pairs = p.tokens * (p.one_a_segment ? 1 : p.longest);
  const double flops = 2.0 * static_cast<double>(pairs * p.heads) *
                       static_cast<double>(args.head_dim + args.v_head_dim);
  Candidate candidate =
      MakeCandidate(target, node, "segment_attention", RunSegmentAttention, p, flops);
  if (p.rounding) {
    candidate.option.kernel = absl::StrCat("segment_attention_bf16_", IsaName(target.isa));
  }
  candidate.bound.work.exps = static_cast<double>(pairs * p.heads);
  candidate.option.takes_live_rows = true;
  candidate.option.workspace_bytes = sizeof(float) * p.scratch_floats * p.scratch_parts;
  candidate.bound.detail =
      absl::StrCat(p.tokens, " tokens in ", p.segments, " segments of at most ", p.longest, ", ",
                   p.heads, " heads of ", args.head_dim,
                   p.has_mask ? p.mask_is_bool ? ", bool mask" : ", added mask" : "",
                   p.has_bias ? ", bias" : "", p.one_a_segment ? ", one query each" : "");
  return {std::move(candidate)};
}

std::vector<Candidate> PlanSegmentReduce(const CpuTarget& target, const NodeView& node) {
  const std::string reduction = SegmentReduceOp::From(node.attributes()).reduction;
  const int64_t tokens = node.shape(0)[0], segments = node.shape(1)[0] - 1;
  const int64_t row = RowElements(node.shape(0));
  Candidate candidate;
  if (reduction == "first" || reduction == "last") {
    const MoveParams params = {tokens, segments, row * DTypeSize(node.dtype(0)), 2};
    candidate = MakeCandidate(target, node, absl::StrCat("segment_", reduction),
                              reduction == "first" ? RunMove<Move::kFirst> : RunMove<Move::kLast>,
                              params, 0);
  } else if (node.dtype(0) == DType::kFloat32) {
    const Fold fold = reduction == "max"   ? Fold::kMax
                      : reduction == "min" ? Fold::kMin
                                           : Fold::kSum;
    const ReduceParams params = {&RowKernelsFor(target.isa), tokens, segments, row,
                                 reduction == "mean",        fold};
    candidate = MakeCandidate(target, node, absl::StrCat("segment_", reduction), RunReduce, params,
                              static_cast<double>(tokens * row));
  } else {
    return {};
  }
  candidate.option.takes_live_rows = true;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanSegmentSpread(const CpuTarget& target, const NodeView& node) {
  const MoveParams params = {node.out_shape()[0], node.shape(0)[0],
                             RowElements(node.shape(0)) * DTypeSize(node.dtype(0)), 3};
  Candidate candidate =
      MakeCandidate(target, node, "segment_spread", RunMove<Move::kSpread>, params, 0);
  candidate.option.takes_live_rows = true;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanSegmentCumSum(const CpuTarget& target, const NodeView& node) {
  const auto op = SegmentCumSumOp::From(node.attributes());
  const CumSumParams params = {node.shape(0)[0], node.shape(1)[0] - 1, RowElements(node.shape(0)),
                               op.exclusive, op.reverse};
  KernelFn run = nullptr;
  (void)ops::Dispatch(ops::TypeList<float, int32_t, int64_t>{}, node.dtype(0),
                      [&]<typename T>() { run = RunCumSum<T>; });
  if (run == nullptr) return {};
  Candidate candidate = MakeCandidate(target, node, "segment_cumsum", run, params,
                                      static_cast<double>(params.tokens * params.row));
  candidate.option.takes_live_rows = true;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu

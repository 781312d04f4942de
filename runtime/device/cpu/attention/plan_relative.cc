// reprise.RelativeAttention, over rows of one length or over packed tokens: a block of queries of a
// (sequence, head) gets its bias (relative_scores.h), then the kernel of attention.
#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/attention/attention_plans.h"
#include "runtime/device/cpu/attention/relative_scores.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/attention/relative_attention.h"
#include "runtime/ops/attention/relative_attention_op.h"
#include "runtime/ops/attention/segment.h"

namespace reprise::cpu {
namespace {

using In = RelativeAttentionOp;
using ops::SegmentAt;
using ops::SegmentRange;

struct RelativeParams {
  const RelativeScoresKernels* scores = nullptr;
  const AttentionKernels* attention = nullptr;
  AttentionArgs args;          // strides and sizes; the pointers point to row 0, head 0
  RelativeTable tables[2];     // tables of queries and of keys; only the sizes are set
  bool given[2] = {};          // which there are
  int64_t table_head[2] = {};  // elements from one head's table to the next
  int64_t sequences = 0, heads = 0;
  int64_t rows = 0;     // the rows of all sequences together
  int64_t longest = 0;  // the longest sequence
  bool packed = false;
  bool one_a_segment = false;  // q, the mask of queries and out have one row a segment
  bool has_mask = false, has_query_mask = false;
  AttentionMask mask;  // rows of one length have it
  float lowest = -std::numeric_limits<float>::infinity();
  int out = 0, workspace = 0;
  int64_t scores_floats = 0, scratch_floats = 0;  // the former of the latter
  int scratch_parts = 0;
  int64_t block = 0;  // queries of a unit
  int64_t batch_rows = 0;
};

SegmentRange SequenceAt(const LaunchArgs& launch, const RelativeParams& p, int64_t s) {
  if (!p.packed) return {s * p.longest, (s + 1) * p.longest};
  const auto* segments = static_cast<const int32_t*>(launch.operands[In::kSegments]);
  SegmentRange segment = SegmentAt(segments, s, p.rows);
  segment.end = std::min(segment.end, segment.begin + p.longest);
  return segment;
}

RelativeTable TableOf(const LaunchArgs& launch, const RelativeParams& p, int which, int64_t head) {
  if (!p.given[which]) return {};
  const size_t input = which == 0 ? In::kQueryTable : In::kKeyTable;
  RelativeTable table = p.tables[which];
  table.columns = static_cast<const float*>(launch.operands[input]) + head * p.table_head[which];
  table.places = static_cast<const int64_t*>(launch.operands[input + 1]);
  return table;
}

int64_t QueriesOf(const RelativeParams& p, const SegmentRange& rows) {
  return p.one_a_segment ? std::min<int64_t>(rows.size(), 1) : rows.size();
}

// Queries [begin, end) of head `head` of sequence `s`, which is rows `rows`. Where a sequence has
// one query it is that at its place.
void RunBlock(const LaunchArgs& launch, const RelativeParams& p, int64_t s,
              const SegmentRange& rows, int64_t head, int64_t begin, int64_t end) {
  float* scratch =
      static_cast<float*>(launch.operands[p.workspace]) + launch.part * p.scratch_floats;
  if (p.one_a_segment) {
    begin = std::clamp<int64_t>(static_cast<const int64_t*>(launch.operands[In::kPlaces])[s], 0,
                                rows.size() - 1);
    end = begin + 1;
  }
  // The row of the first token, where every token has a query.
  const int64_t query_row = p.one_a_segment ? s - begin : rows.begin;
  const auto at = [&](int operand, int64_t row, int64_t size, int64_t stride) {
    return static_cast<float*>(launch.operands[operand]) + row * stride + head * size;
  };
  AttentionArgs args = p.args;
  args.keys = rows.size();
  args.q = at(0, query_row, args.head_dim, args.q_stride);
  args.k = at(1, rows.begin, args.head_dim, args.k_stride);
  args.v = at(2, rows.begin, args.v_head_dim, args.v_stride);
  args.out = at(p.out, query_row, args.v_head_dim, args.out_stride);

  RelativeScoresArgs scores = {.q = args.q,
                               .k = args.k,
                               .q_stride = args.q_stride,
                               .k_stride = args.k_stride,
                               .keys = args.keys,
                               .head_dim = args.head_dim,
                               .q_table = TableOf(launch, p, 0, head),
                               .k_table = TableOf(launch, p, 1, head),
                               .lowest_mask = p.lowest,
                               .scratch = scratch};
  const auto mask_at = [&](size_t input, int64_t offset) {
    return static_cast<const float*>(launch.operands[input]) + offset;
  };
  if (p.packed) {
    if (p.has_mask) scores.key_mask = mask_at(In::kMask, rows.begin);
    if (p.has_query_mask) scores.query_mask = mask_at(In::kQueryMask, query_row);
  } else if (p.has_mask) {
    const int64_t offset = s * p.mask.batch + head * p.mask.head;
    if (p.mask.is_bool) {
      args.keep =
          static_cast<const uint8_t*>(launch.operands[In::kMask]) + offset + begin * p.mask.query;
      args.keep_stride = p.mask.query;
    } else {
      scores.mask = mask_at(In::kMask, offset);
      scores.mask_stride = p.mask.query;
    }
  }
  const RelativeBias bias = p.scores->bias(scores, begin, end);
  args.bias = bias.values;
  args.bias_stride = bias.stride;
  args.q += begin * args.q_stride;
  args.out += begin * args.out_stride;
  args.scratch = scratch + p.scores_floats;
  p.attention->rows(args, 0, end - begin);
}

// Clears empty segments: nothing attends there, and ops over rows of segments read them all.
void ClearEmptySegments(const LaunchArgs& launch, const RelativeParams& p) {
  auto* out = static_cast<float*>(launch.operands[p.out]);
  for (int64_t s = 0; s < p.sequences; ++s) {
    if (SequenceAt(launch, p, s).size() > 0) continue;
    std::fill_n(out + s * p.args.out_stride, p.heads * p.args.v_head_dim, 0.0f);
  }
}

// Units cost as many as the keys that they look at.
void RunRelative(const LaunchArgs& launch) {
  const auto& p = *static_cast<const RelativeParams*>(launch.params);
  const int parts = PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  const int64_t sequences =
      p.packed ? p.sequences : LiveOf(p.sequences, p.batch_rows, *launch.frame);
  if (p.one_a_segment && launch.part == 0) ClearEmptySegments(launch, p);
  const auto blocks_of = [&](const SegmentRange& rows) {
    return (QueriesOf(p, rows) + p.block - 1) / p.block;
  };
  const auto units_of = [&](int64_t s) -> CostedUnits {
    const SegmentRange rows = SequenceAt(launch, p, s);
    return {p.heads * blocks_of(rows), rows.size(), s + 1};
  };
  ForShareOfCost(sequences, launch.part, parts, units_of,
                 [&](int64_t s, int64_t unit, int64_t last) {
                   const SegmentRange rows = SequenceAt(launch, p, s);
                   const int64_t blocks = blocks_of(rows);
                   for (; unit < last; ++unit) {
                     const int64_t begin = unit % blocks * p.block;
                     const int64_t end = std::min(QueriesOf(p, rows), begin + p.block);
                     RunBlock(launch, p, s, rows, unit / blocks, begin, end);
                   }
                 });
}

}  // namespace

std::vector<Candidate> PlanRelativeAttention(const CpuTarget& target, const NodeView& node) {
  const AttentionKernels& attention = AttentionKernelsFor(target.isa);
  const Attributes& attributes = node.attributes();
  RelativeParams p;
  p.scores = &RelativeScoresKernelsFor(target.isa);
  p.attention = &attention;
  p.packed = node.has_input(In::kSegments);
  const auto op = RelativeAttentionOp::From(attributes);
  p.heads = op.num_heads;
  const Shape &k = node.shape(1), &v = node.shape(2);
  AttentionArgs& args = p.args;
  args.q_stride = args.k_stride = k.back();
  args.v_stride = args.out_stride = v.back();
  args.head_dim = k.back() / p.heads;
  args.v_head_dim = v.back() / p.heads;
  args.scale = op.scale;
  args.zero_when_masked = op.nan_to_zero;
  args.one_order = op.one_order;
  if (p.packed) {
    p.rows = k[0];
    p.one_a_segment = node.has_input(In::kPlaces);
    p.sequences = node.shape(In::kSegments)[0] - 1;
    const int64_t longest = op.longest;
    p.longest = longest > 0 ? std::min(longest, p.rows) : p.rows;
    p.lowest = attributes.Float("lowest", p.lowest);
  } else {
    p.sequences = k[0];
    p.longest = k[1];
    p.rows = k[0] * k[1];
  }
  p.has_mask = node.has_input(In::kMask);
  p.has_query_mask = node.has_input(In::kQueryMask);
  if (p.has_mask && !p.packed) {
    const std::optional<AttentionMask> mask = MaskOf(node, In::kMask, p.longest);
    if (!mask.has_value()) return {};
    p.mask = *mask;
  }
  for (int which = 0; which < 2; ++which) {
    const size_t input = which == 0 ? In::kQueryTable : In::kKeyTable;
    p.given[which] = node.has_input(input);
    if (!p.given[which]) continue;
    p.tables[which].width = node.shape(input)[2];
    p.tables[which].reach = node.shape(input + 1)[0] / 2;
    p.table_head[which] = args.head_dim * p.tables[which].width;
  }
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = p.out + 1;
  // On AVX-512 their products with a key, each one column further, fill three vectors; the tables
  // are laid out once for them all.
  p.block = 3 * attention.query_block;
  const int64_t queries = p.one_a_segment ? 1 : std::min(p.block, p.longest);
  p.scores_floats = static_cast<int64_t>(
      AlignUp(p.scores->scratch_floats(queries, p.longest, args.head_dim), 16));
  p.scratch_floats = p.scores_floats +
                     static_cast<int64_t>(AlignUp(
                         attention.scratch_floats(p.longest, args.head_dim, args.v_head_dim), 16));
  p.scratch_parts = target.scratch_parts;
  p.batch_rows = node.batch_rows();

  const int64_t tables = (p.given[0] ? 1 : 0) + (p.given[1] ? 1 : 0);
  const int64_t all_queries = p.one_a_segment ? p.sequences : p.rows;
  const double flops = 2.0 * static_cast<double>(all_queries * p.heads * p.longest) *
                       static_cast<double>((1 + tables) * args.head_dim + args.v_head_dim);
  Candidate candidate = MakeCandidate(target, node, "relative_attention", RunRelative, p, flops);
  candidate.option.takes_live_rows = p.packed || p.batch_rows > 0;
  candidate.option.workspace_bytes = sizeof(float) * p.scratch_floats * p.scratch_parts;
  candidate.bound.work.exps = static_cast<double>(all_queries * p.heads * p.longest);
  candidate.bound.detail = absl::StrCat(
      p.rows, " tokens in ", p.sequences, " sequences of at most ", p.longest, ", ",
      p.one_a_segment ? "one query each, " : "", p.heads, " heads of ", args.head_dim, ", ", tables,
      " tables by distance", p.has_mask ? p.mask.is_bool ? ", bool mask" : ", added mask" : "");
  return {std::move(candidate)};
}

}  // namespace reprise::cpu

// reprise.Attention: (sequence, head, block of queries) are the units that are divided over parts.
#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/attention/attention_plans.h"
#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/attention/attention_op.h"

namespace reprise::cpu {
namespace {

struct AttentionParams {
  const AttentionKernels* kernels = nullptr;
  AttentionArgs args;  // Strides and sizes; the pointers point to sequence 0, head 0.
  int64_t batch = 0, heads = 0, queries = 0;
  int k = 0, v = 0;      // operands; q is operand 0
  int64_t k_offset = 0;  // elements, in a fused product
  int64_t v_offset = 0;
  int64_t q_batch = 0, k_batch = 0, v_batch = 0;  // elements from one sequence to the next
  int64_t k_head = 0, v_head = 0;                 // and from one head to the next
  int64_t kv_group = 1;                           // heads of queries that share one of these
  bool has_mask = false;
  AttentionMask mask;
  int out = 0, workspace = 0;
  int64_t scratch_floats = 0;
  int scratch_parts = 0;
  int64_t units_of_head = 0;  // blocks of queries
  int64_t block = 0;
  int64_t batch_rows = 0;
};

void RunAttention(const LaunchArgs& launch) {
  const auto& p = *static_cast<const AttentionParams*>(launch.params);
  const int64_t batch = LiveOf(p.batch, p.batch_rows, *launch.frame);
  const int64_t units = batch * p.heads * p.units_of_head;
  const int parts =
      static_cast<int>(std::min<int64_t>(units, PartsWithScratch(launch, p.scratch_parts)));
  if (launch.part >= parts) return;
  AttentionArgs args = p.args;
  const auto* q = static_cast<const float*>(launch.operands[0]);
  const float* k = static_cast<const float*>(launch.operands[p.k]) + p.k_offset;
  const float* v = static_cast<const float*>(launch.operands[p.v]) + p.v_offset;
  auto* out = static_cast<float*>(launch.operands[p.out]);
  args.scratch = static_cast<float*>(launch.operands[p.workspace]) + launch.part * p.scratch_floats;

  // A part takes a run of neighbouring units; units of one head are one call, so that its keys are
  // fetched once.
  const ItemRange range = RangeOfPart(units, 1, launch.part, parts);
  for (int64_t unit = range.begin; unit < range.end;) {
    const int64_t pair = unit / p.units_of_head;
    const int64_t first = unit % p.units_of_head;
    const int64_t last = std::min(p.units_of_head, first + range.end - unit);
    const int64_t b = pair / p.heads, h = pair % p.heads;
    args.q = q + b * p.q_batch + h * args.head_dim;
    args.k = k + b * p.k_batch + h / p.kv_group * p.k_head;
    args.v = v + b * p.v_batch + h / p.kv_group * p.v_head;
    args.out = out + b * p.queries * args.out_stride + h * args.v_head_dim;
    if (p.has_mask) {
      const int64_t offset = b * p.mask.batch + h * p.mask.head;
      if (p.mask.is_bool) {
        args.keep = static_cast<const uint8_t*>(launch.operands[3]) + offset;
      } else {
        args.bias = static_cast<const float*>(launch.operands[3]) + offset;
      }
    }
    p.kernels->rows(args, first * p.block, std::min(p.queries, last * p.block));
    unit += last - first;
  }
}

}  // namespace

std::optional<AttentionMask> MaskOf(const NodeView& node, size_t input, int64_t keys) {
  const Shape& mask = node.shape(input);
  Shape sizes(4, 1);
  if (mask.size() > 4) return std::nullopt;
  std::copy(mask.begin(), mask.end(), sizes.end() - static_cast<int64_t>(mask.size()));
  if (sizes[3] != keys) return std::nullopt;
  return AttentionMask{.is_bool = node.dtype(input) == DType::kBool,
                       .batch = sizes[0] == 1 ? 0 : sizes[1] * sizes[2] * sizes[3],
                       .head = sizes[1] == 1 ? 0 : sizes[2] * sizes[3],
                       .query = sizes[2] == 1 ? 0 : sizes[3]};
}

std::vector<Candidate> PlanAttention(const CpuTarget& target, const NodeView& node) {
  if (node.dtype(0) != DType::kFloat32) return {};
  const Attributes& attributes = node.attributes();
  AttentionParams p;
  const auto op = AttentionOp::From(attributes);
  p.heads = op.num_heads;
  const Shape& q = node.shape(0);
  if (p.heads <= 0 || q.size() != 3) return {};
  // Those are read from pages, by a kernel of that form.
  if (node.has_input(AttentionOp::kSinks) || op.softcap != 0) return {};
  p.batch = q[0];
  p.queries = q[1];
  const int64_t out_width = node.out_shape()[2];
  AttentionArgs& args = p.args;
  args.v_head_dim = out_width / p.heads;
  args.out_stride = out_width;
  p.v_head = args.v_head_dim;
  if (op.packed_qkv) {
    const int64_t width = (q[2] - out_width) / 2;
    args.head_dim = width / p.heads;
    args.keys = p.queries;
    args.q_stride = args.k_stride = args.v_stride = q[2];
    p.k_offset = width;
    p.v_offset = 2 * width;
    p.q_batch = p.k_batch = p.v_batch = p.queries * q[2];
  } else {
    args.head_dim = q[2] / p.heads;
    const bool k_by_head = op.k_by_head;
    const bool v_by_head = op.v_by_head;
    args.keys = node.shape(1)[k_by_head ? 2 : 1];
    if (k_by_head) p.kv_group = p.heads / node.shape(1)[1];
    args.q_stride = q[2];
    args.k_stride = k_by_head ? args.head_dim : q[2];
    args.v_stride = v_by_head ? args.v_head_dim : out_width;
    p.k = 1;
    p.v = 2;
    if (k_by_head) p.k_head = args.keys * args.head_dim;
    if (v_by_head) p.v_head = args.keys * args.v_head_dim;
    p.q_batch = p.queries * q[2];
    p.k_batch = args.keys * q[2] / p.kv_group;
    p.v_batch = args.keys * out_width / p.kv_group;
  }
  if (p.k_head == 0) p.k_head = args.head_dim;
  args.scale = op.scale;
  args.zero_when_masked = op.nan_to_zero;
  // Models that round promise it, also where no kernel rounds.
  args.one_order = RoundsToBf16(node);
  if (node.has_input(3)) {
    const std::optional<AttentionMask> mask = MaskOf(node, 3, args.keys);
    if (!mask.has_value()) return {};
    p.has_mask = true;
    p.mask = *mask;
    args.bias_stride = args.keep_stride = p.mask.query;
  }
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = p.out + 1;
  // Where it is to be rounded its kernels take all sizes: an answer is then the same in any bucket.
  const AttentionKernels* rounding =
      RoundsToBf16(node) ? RoundingAttentionKernelsFor(target.isa) : nullptr;
  // The tile unit takes long rows alone, and adds in another order than vectors do.
  const bool tiles = rounding == nullptr && !target.one_order &&
                     TileAttentionKernelsFor(target.isa) != nullptr &&
                     SuitsTileAttention(p.queries, args.keys, args.head_dim);
  p.kernels = rounding != nullptr ? rounding
              : tiles             ? TileAttentionKernelsFor(target.isa)
                                  : &AttentionKernelsFor(target.isa);
  p.scratch_floats = static_cast<int64_t>(
      AlignUp(p.kernels->scratch_floats(args.keys, args.head_dim, args.v_head_dim), 16));
  // Long sequences are divided further, so that few heads still keep many parts busy.
  p.block = 2 * p.kernels->query_block;
  p.units_of_head = (p.queries + p.block - 1) / p.block;

  p.scratch_parts = target.scratch_parts;
  p.batch_rows = node.batch_rows();

  const double flops = 2.0 * static_cast<double>(p.batch * p.heads * p.queries * args.keys) *
                       static_cast<double>(args.head_dim + args.v_head_dim);
  Candidate candidate = MakeCandidate(target, node, "attention", RunAttention, p, flops);
  if (tiles) candidate.option.kernel = "attention_amx";
  if (rounding != nullptr) {
    candidate.option.kernel = absl::StrCat("attention_bf16_", IsaName(target.isa));
  }
  candidate.bound.work.exps = static_cast<double>(p.batch * p.heads * p.queries * args.keys);
  const int64_t units = p.batch * p.heads * p.units_of_head;
  candidate.option.takes_live_rows = p.batch_rows > 0;
  candidate.option.workspace_bytes =
      sizeof(float) * p.scratch_floats * std::min<int64_t>(units, p.scratch_parts);
  candidate.bound.detail = absl::StrCat(
      p.batch, " x ", p.heads, " heads, ", p.queries, " queries, ", args.keys, " keys, head dim ",
      args.head_dim, p.has_mask ? p.mask.is_bool ? ", bool mask" : ", added mask" : "");
  return {std::move(candidate)};
}

}  // namespace reprise::cpu

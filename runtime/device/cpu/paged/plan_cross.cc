// reprise.PagedCrossAttention: each token attends to all positions of the encoder's result for its
// sequence. The units, a few tokens of one sequence and one head of keys, are divided over parts by
// the keys they look at.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/paged/paged_attention.h"
#include "runtime/device/cpu/paged/paged_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/attention/paged.h"

namespace reprise::cpu {
namespace {

constexpr size_t kQuery = 0, kLengths = 1, kTables = 2, kOut = 3, kWorkspace = 4;

struct CrossParams {
  const PagedKernels* kernels = nullptr;
  PagedArgs args;  // sizes; offsets are for head 0
  int64_t tokens = 0, batch_rows = 0, heads = 0, kv_heads = 0, group = 0;
  int64_t tile = 1;  // tokens of a unit
  int scratch_parts = 0;
};

// How many places the tokens of a replay see, and where these lie.
struct CrossTokens {
  explicit CrossTokens(const LaunchArgs& launch)
      : lengths(static_cast<const int64_t*>(launch.operands[kLengths])),
        tables(static_cast<std::byte* const* const*>(launch.operands[kTables])) {}

  const int64_t* lengths;
  std::byte* const* const* tables;  // numbers of 64 bits that are addresses
};
static_assert(sizeof(std::byte* const*) == sizeof(int64_t));

// Returns the tokens of a unit that begins at `token`: of one sequence, side by side.
int64_t EndOfCrossTile(const CrossParams& p, const CrossTokens& all, int64_t token,
                       int64_t tokens) {
  int64_t end = token + 1;
  while (end < std::min(tokens, token + p.tile) && all.tables[end] == all.tables[token]) ++end;
  return end;
}

void RunCrossUnit(const LaunchArgs& launch, const CrossParams& p, int64_t begin, int64_t end,
                  int64_t kv_head) {
  const CrossTokens all(launch);
  PagedArgs args = p.args;
  args.pages = all.tables[begin];
  args.k_offset += kv_head * args.head_dim * ops::kPagePositions;
  args.v_offset += kv_head * ops::kPagePositions * ops::PagedValueStride(args.v_head_dim);
  args.scratch = static_cast<float*>(launch.operands[kWorkspace]) +
                 launch.part * kMostPagedRows * args.scratch_stride;
  const auto* q = static_cast<const float*>(launch.operands[kQuery]);
  auto* out = static_cast<float*>(launch.operands[kOut]);
  PagedRow rows[kMostPagedRows];
  int64_t count = 0;
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t g = 0; g < p.group; ++g) {
      const int64_t head = kv_head * p.group + g;
      rows[count++] = {.q = q + (t * p.heads + head) * args.head_dim,
                       .out = out + (t * p.heads + head) * args.v_head_dim,
                       .position = all.lengths[t] - 1};
      if (count < p.kernels->most_rows && (t + 1 < end || g + 1 < p.group)) continue;
      p.kernels->rows(args, rows, count);
      count = 0;
    }
  }
}

void RunCross(const LaunchArgs& launch) {
  const auto& p = *static_cast<const CrossParams*>(launch.params);
  const int parts = launch.lone_part ? launch.parts : std::min(launch.parts, p.scratch_parts);
  if (launch.part >= parts) return;
  const CrossTokens all(launch);
  const int64_t most = LiveOf(p.tokens, p.batch_rows, *launch.frame);
  int64_t tokens = 0, total = 0;
  // Where no sequence keeps pages, nothing is computed.
  for (; tokens < most && all.tables[tokens] != nullptr; ++tokens) {
    total += all.lengths[tokens] + ops::kPagePositions;
  }
  total *= p.kv_heads;
  const int64_t low = FirstOfPart(total, launch.part, parts);
  const int64_t high = FirstOfPart(total, launch.part + 1, parts);
  int64_t cost = 0;  // where the unit begins
  for (int64_t t = 0; t < tokens && cost < high;) {
    const int64_t end = EndOfCrossTile(p, all, t, tokens);
    const int64_t own = (end - t) * (all.lengths[t] + ops::kPagePositions);
    for (int64_t h = 0; h < p.kv_heads; ++h, cost += own) {
      if (cost >= low && cost < high) RunCrossUnit(launch, p, t, end, h);
    }
    t = end;
  }
}

}  // namespace

std::vector<Candidate> PlanPagedCrossAttention(const CpuTarget& target, const NodeView& node) {
  const Attributes& attributes = node.attributes();
  CrossParams p;
  p.tokens = node.shape(kQuery)[0];
  p.batch_rows = node.batch_rows();
  p.heads = attributes.Int("num_heads", 1);
  p.kv_heads = attributes.Int("kv_heads", 1);
  p.group = p.heads / p.kv_heads;
  p.kernels = &PagedKernelsFor(target.isa);
  p.tile = std::max<int64_t>(1, p.kernels->most_rows / p.group);
  p.scratch_parts = target.scratch_parts;
  const int64_t context = attributes.Int("context", 0);
  p.args = {.k_offset = attributes.Int("k_offset", 0),
            .v_offset = attributes.Int("v_offset", 0),
            .head_dim = node.shape(kQuery)[2] / p.heads,
            .v_head_dim = attributes.Int("v_size", 1),
            .scale = attributes.Float("scale", 1),
            .softcap = attributes.Float("softcap", 0),
            .scratch_stride = PagedScratchStride(context)};
  const double pairs = static_cast<double>(p.tokens * p.heads) * static_cast<double>(context) / 2;
  Candidate candidate =
      MakeCandidate(target, node, "paged_cross_attention", RunCross, p,
                    2 * pairs * static_cast<double>(p.args.head_dim + p.args.v_head_dim));
  candidate.option.takes_live_rows = p.batch_rows > 0;
  candidate.option.workspace_bytes =
      sizeof(float) * kMostPagedRows * p.args.scratch_stride * static_cast<size_t>(p.scratch_parts);
  candidate.bound.detail = absl::StrCat(p.tokens, " tokens, ", p.heads, " heads over ", p.kv_heads,
                                        ", head dim ", p.args.head_dim);
  return {std::move(candidate)};
}

}  // namespace reprise::cpu

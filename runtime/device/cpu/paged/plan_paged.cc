// reprise.PagedAttention: a phase that appends, and one that attends. The units of the second, a
// few rows of one sequence and one head of keys, are divided over parts by the keys they look at.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/paged/paged_attention.h"
#include "runtime/device/cpu/paged/paged_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/attention/paged.h"

namespace reprise::cpu {
namespace {

constexpr int64_t kPage = ops::kPagePositions;
constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kPositions = 3, kTables = 4, kOut = 5,
                 kWorkspace = 6;

struct PagedParams {
  const PagedKernels* kernels = nullptr;
  PagedArgs args;  // sizes; offsets are those of head 0
  int64_t tokens = 0, batch_rows = 0, heads = 0, kv_heads = 0, group = 0;
  int64_t tile = 1;  // tokens of a unit
  std::vector<float> slopes;
  std::vector<float> biases;  // as PagedRow wants them, head by head; or none
  int scratch_parts = 0;
  void (*append)(const LaunchArgs& launch, const PagedParams& p, int64_t tokens) = nullptr;
};

// Where the tokens of a replay stand, and where their sequences' pages lie.
struct Tokens {
  explicit Tokens(const LaunchArgs& launch)
      : positions(static_cast<const int64_t*>(launch.operands[kPositions])),
        tables(static_cast<std::byte* const* const*>(launch.operands[kTables])) {}

  // The first of `count` tokens, those of sequences.
  int64_t live(int64_t count) const {
    int64_t tokens = 0;
    while (tokens < count && tables[tokens] != nullptr) ++tokens;
    return tokens;
  }

  std::byte* page(int64_t token) const { return tables[token][positions[token] / kPage]; }

  const int64_t* positions;
  std::byte* const* const* tables;  // numbers of 64 bits that are addresses
};
static_assert(sizeof(std::byte* const*) == sizeof(int64_t));

// Writes `count` numbers `stride` cells apart, as a page of that dtype holds them. The scale of
// integers is written to `scale`.
void Store(const float* from, int64_t count, float* to, int64_t stride, float*) {
  for (int64_t i = 0; i < count; ++i) to[i * stride] = from[i];
}
void Store(const float* from, int64_t count, uint16_t* to, int64_t stride, float*) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, from + i, sizeof(bits));
    // To the nearest bfloat16, ties to even; what is no number stays so.
    const bool is_number = from[i] == from[i];
    bits = is_number ? bits + 0x7FFF + (bits >> 16 & 1) : bits | 0x400000;
    to[i * stride] = static_cast<uint16_t>(bits >> 16);
  }
}
void Store(const float* from, int64_t count, int8_t* to, int64_t stride, float* scale) {
  constexpr float kMost = 127;
  float largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(from[i]));
    finite = finite && std::isfinite(from[i]);
  }
  // Scores of what is no number are no numbers.
  *scale = finite ? largest / kMost : std::numeric_limits<float>::quiet_NaN();
  const float inverse = finite && *scale > 0 ? 1 / *scale : 0;
  for (int64_t i = 0; i < count; ++i) {
    const float cell = inverse == 0 ? 0 : std::nearbyint(from[i] * inverse);
    to[i * stride] = static_cast<int8_t>(std::clamp(cell, -kMost, kMost));
  }
}

// Keys go to columns, so that the scores of neighbouring positions are neighbours.
template <class Cell>
void Append(const LaunchArgs& launch, const PagedParams& p, int64_t tokens) {
  const Tokens all(launch);
  const int64_t size = p.args.head_dim, size_v = p.args.v_head_dim;
  const int64_t stride_v = ops::PagedValueStride(size_v);
  const ItemRange range = RangeOfPart(tokens, 1, launch.part, launch.parts);
  for (int64_t t = range.begin; t < range.end; ++t) {
    const int64_t slot = all.positions[t] % kPage;
    const float* key = static_cast<const float*>(launch.operands[kKey]) + t * p.kv_heads * size;
    const float* value =
        static_cast<const float*>(launch.operands[kValue]) + t * p.kv_heads * size_v;
    auto* const page = reinterpret_cast<Cell*>(all.page(t));
    Cell* keys = page + p.args.k_offset + slot;
    Cell* values = page + p.args.v_offset + slot * stride_v;
    float* k_scales = reinterpret_cast<float*>(page) + p.args.k_scales + slot;
    float* v_scales = reinterpret_cast<float*>(page) + p.args.v_scales + slot;
    for (int64_t h = 0; h < p.kv_heads; ++h) {
      Store(key + h * size, size, keys + h * size * kPage, kPage, k_scales + h * kPage);
      Cell* to = values + h * kPage * stride_v;
      Store(value + h * size_v, size_v, to, 1, v_scales + h * kPage);
      std::fill(to + size_v, to + stride_v, Cell{0});
    }
  }
}

// `biases`: `span` numbers a head, that of distance 0 first.
std::vector<float> BiasRows(const std::vector<float>& biases, int64_t span) {
  std::vector<float> rows;
  for (size_t head = 0; head + span <= biases.size(); head += span) {
    rows.insert(rows.end(), kPagePad, biases[head + span - 1]);
    for (int64_t distance = span - 1; distance >= 0; --distance) {
      rows.push_back(biases[head + distance]);
    }
    rows.insert(rows.end(), kPagePad, 0.0f);
  }
  return rows;
}

const float* BiasesOf(const PagedParams& p, int64_t head) {
  if (p.biases.empty()) return nullptr;
  return p.biases.data() + head * (p.args.bias_span + 2 * kPagePad) + kPagePad;
}

// The tokens of a unit that begins at `token`: of one sequence, side by side.
int64_t EndOfTile(const PagedParams& p, const Tokens& all, int64_t token, int64_t tokens) {
  int64_t end = token + 1;
  while (end < std::min(tokens, token + p.tile) && all.tables[end] == all.tables[token]) {
    ++end;
  }
  return end;
}

int64_t CostOf(const PagedParams& p, const Tokens& all, int64_t begin, int64_t end) {
  const int64_t keys = all.positions[end - 1] + 1;
  const int64_t seen = p.args.window > 0 ? std::min(keys, p.args.window + end - begin) : keys;
  return (end - begin) * (seen + kPage);
}

void RunUnit(const LaunchArgs& launch, const PagedParams& p, int64_t begin, int64_t end,
             int64_t kv_head) {
  const Tokens all(launch);
  PagedArgs args = p.args;
  args.pages = all.tables[begin];
  args.k_offset += kv_head * args.head_dim * kPage;
  args.v_offset += kv_head * kPage * ops::PagedValueStride(args.v_head_dim);
  args.k_scales += kv_head * kPage;
  args.v_scales += kv_head * kPage;
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
                       .position = all.positions[t],
                       .slope = p.slopes.empty() ? 0 : p.slopes[head],
                       .biases = BiasesOf(p, head)};
      if (count < p.kernels->most_rows && (t + 1 < end || g + 1 < p.group)) continue;
      p.kernels->rows(args, rows, count);
      count = 0;
    }
  }
}

void Attend(const LaunchArgs& launch, const PagedParams& p, int64_t tokens) {
  const int parts = launch.lone_part ? launch.parts : std::min(launch.parts, p.scratch_parts);
  if (launch.part >= parts) return;
  const Tokens all(launch);
  int64_t total = 0;
  for (int64_t t = 0; t < tokens;) {
    const int64_t end = EndOfTile(p, all, t, tokens);
    total += CostOf(p, all, t, end);
    t = end;
  }
  total *= p.kv_heads;
  const int64_t low = FirstOfPart(total, launch.part, parts);
  const int64_t high = FirstOfPart(total, launch.part + 1, parts);
  int64_t cost = 0;  // where the unit begins
  for (int64_t t = 0; t < tokens && cost < high;) {
    const int64_t end = EndOfTile(p, all, t, tokens), own = CostOf(p, all, t, end);
    for (int64_t h = 0; h < p.kv_heads; ++h, cost += own) {
      if (cost >= low && cost < high) RunUnit(launch, p, t, end, h);
    }
    t = end;
  }
}

void RunPagedAttention(const LaunchArgs& launch) {
  const auto& p = *static_cast<const PagedParams*>(launch.params);
  const int64_t tokens = Tokens(launch).live(LiveOf(p.tokens, p.batch_rows, *launch.frame));
  if (launch.phase == 0) {
    p.append(launch, p, tokens);
  } else {
    Attend(launch, p, tokens);
  }
}

}  // namespace

std::vector<Candidate> PlanPagedAttention(const CpuTarget& target, const NodeView& node) {
  const Attributes& attributes = node.attributes();
  PagedParams p;
  p.tokens = node.shape(kQuery)[0];
  p.batch_rows = node.batch_rows();
  p.heads = attributes.Int("num_heads", 1);
  p.kv_heads = attributes.Int("kv_heads", 1);
  p.group = p.heads / p.kv_heads;
  const auto dtype = static_cast<ops::CacheDType>(attributes.Int("cache_dtype", 0));
  p.kernels = &PagedKernelsFor(target.isa, dtype);
  p.append = dtype == ops::CacheDType::kFloat32    ? Append<float>
             : dtype == ops::CacheDType::kBFloat16 ? Append<uint16_t>
                                                   : Append<int8_t>;
  p.tile = std::max<int64_t>(1, p.kernels->most_rows / p.group);
  p.scratch_parts = target.scratch_parts;
  const int64_t context = attributes.Int("context", 0);
  p.args = {.k_offset = attributes.Int("k_offset", 0),
            .v_offset = attributes.Int("v_offset", 0),
            .k_scales = attributes.Int("k_scales", 0),
            .v_scales = attributes.Int("v_scales", 0),
            .head_dim = node.shape(kQuery)[2] / p.heads,
            .v_head_dim = node.out_shape()[2] / p.heads,
            .scale = attributes.Float("scale", 1),
            .softcap = attributes.Float("softcap", 0),
            .bias_span = attributes.Int("bias_span", 0),
            .window = attributes.Int("window", 0),
            .scratch_stride = PagedScratchStride(context)};
  if (const auto* slopes = attributes.Get<std::vector<float>>("slopes")) p.slopes = *slopes;
  if (const auto* biases = attributes.Get<std::vector<float>>("biases")) {
    p.biases = BiasRows(*biases, p.args.bias_span);
  }
  const double pairs = static_cast<double>(p.tokens * p.heads) * static_cast<double>(context) / 2;
  Candidate candidate =
      MakeCandidate(target, node, "paged_attention", RunPagedAttention, p,
                    2 * pairs * static_cast<double>(p.args.head_dim + p.args.v_head_dim));
  candidate.option.takes_live_rows = p.batch_rows > 0;
  candidate.option.workspace_bytes =
      sizeof(float) * kMostPagedRows * p.args.scratch_stride * static_cast<size_t>(p.scratch_parts);
  candidate.bound.phases = 2;
  candidate.bound.detail = absl::StrCat(
      p.tokens, " tokens, ", p.heads, " heads over ", p.kv_heads, ", head dim ", p.args.head_dim,
      p.args.window > 0 ? absl::StrCat(", window ", p.args.window) : "");
  return {std::move(candidate)};
}

}  // namespace reprise::cpu

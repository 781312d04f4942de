// reprise.PagedAttention: a phase that appends, and one that attends; reprise.PagedCrossAttention,
// which attends alone. Its units, a few rows of one sequence and one head of keys, are divided over
// parts by the keys they look at.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/paged/paged_attention.h"
#include "runtime/device/cpu/paged/paged_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/simd/half.h"
#include "runtime/ops/attention/paged.h"
#include "runtime/ops/attention/paged_op.h"
#include "runtime/ops/kit/precision.h"

namespace reprise::cpu {
namespace {

using In = PagedAttentionOp;

struct PagedParams {
  const PagedKernels* kernels = nullptr;
  const PagedKernels* carried = nullptr;  // kernels for client-managed caches
  const HalfKernels* half = nullptr;      // converts their float16 to floats
  int64_t k_cache = 0, v_cache = 0;       // positions among the caches of a client
  int64_t scratch_floats = 0;             // the scratch of a part
  PagedArgs args;                         // sizes; offsets are for head 0
  int64_t tokens = 0, batch_rows = 0, heads = 0, kv_heads = 0, group = 0;
  int64_t tile = 1;  // tokens of a unit
  std::vector<float> slopes;
  std::vector<float> biases;  // numbers in the form of PagedRow, head by head; or none
  bool has_sinks = false;
  size_t positions = In::kPositions, tables = In::kTables;  // operands
  int64_t to_last = 0;  // added to a position, or to a length: the last position seen
  size_t out = 0;       // operand; the workspace comes after it
  int scratch_parts = 0;
  // Null: pages are only read.
  void (*append)(const LaunchArgs& launch, const PagedParams& p, int64_t tokens) = nullptr;
};

// Where the tokens of a replay stand, and where their sequences' pages lie.
struct PagedTokens {
  PagedTokens(const LaunchArgs& launch, const PagedParams& p)
      : positions(static_cast<const int64_t*>(launch.operands[p.positions])),
        tables(static_cast<const int64_t*>(launch.operands[p.tables])),
        to_last(p.to_last) {}

  int64_t position(int64_t token) const { return positions[token] + to_last; }

  // Returns how many of the first of `count` tokens belong to sequences.
  int64_t live(int64_t count) const {
    int64_t tokens = 0;
    while (tokens < count && tables[tokens] != 0) ++tokens;
    return tokens;
  }

  // Null where the server holds the token's cache.
  const ops::CarriedToken* carried(int64_t token) const {
    if ((tables[token] & ops::kCarriedMark) == 0) return nullptr;
    return std::bit_cast<const ops::CarriedToken*>(tables[token] - ops::kCarriedMark);
  }
  std::byte* const* pages(int64_t token) const {
    return std::bit_cast<std::byte* const*>(tables[token]);
  }
  std::byte* page(int64_t token) const {
    return pages(token)[position(token) / ops::kPagePositions];
  }
  bool same_sequence(int64_t a, int64_t b) const {
    const ops::CarriedToken *one = carried(a), *other = carried(b);
    if (one == nullptr || other == nullptr) return tables[a] == tables[b];
    return one->sequence == other->sequence;
  }

  const int64_t* positions;
  const int64_t* tables;  // addresses
  int64_t to_last;
};
static_assert(sizeof(std::byte* const*) == sizeof(int64_t));

// One cache of a client's sequence, which takes the new rows of a token.
struct CarriedRows {
  CarriedRows(const ops::CarriedToken& token, int64_t cache, int64_t size)
      : sequence(*token.sequence),
        cache(sequence.caches[cache]),
        place(token.place),
        size(size),
        row_bytes(size * static_cast<int64_t>(sequence.half ? sizeof(uint16_t) : sizeof(float))) {}

  std::byte* head(int64_t h) const { return cache.present + h * sequence.total * row_bytes; }

  // Writes the past of all heads where the sequence begins, then the token's `rows`.
  void Write(const float* rows, int64_t heads, const HalfKernels& half) const {
    const int64_t past_bytes = sequence.past * row_bytes;
    const bool first = sequence.begins && place == sequence.past;
    for (int64_t h = 0; h < heads; ++h) {
      if (first && past_bytes > 0) std::memcpy(head(h), cache.past + h * past_bytes, past_bytes);
      std::byte* const to = head(h) + place * row_bytes;
      if (sequence.half) {
        half.narrow(rows + h * size, reinterpret_cast<uint16_t*>(to), size);
      } else {
        std::memcpy(to, rows + h * size, row_bytes);
      }
    }
  }

  const ops::CarriedSequence& sequence;
  const ops::CarriedCache& cache;
  const int64_t place, size, row_bytes;
};

// Writes `count` numbers `stride` cells apart, as a page of that dtype holds them. The scale of
// integers is written to `scale`.
void Store(const float* from, int64_t count, float* to, int64_t stride, float*) {
  for (int64_t i = 0; i < count; ++i) to[i * stride] = from[i];
}
void Store(const float* from, int64_t count, uint16_t* to, int64_t stride, float*) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, from + i, sizeof(bits));
    // Rounds to the nearest bfloat16, ties to even; NaN stays NaN.
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
  // Scores of NaN are NaN.
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
  const PagedTokens all(launch, p);
  const int64_t size = p.args.head_dim, size_v = p.args.v_head_dim;
  const int64_t stride_v = ops::PagedValueStride(size_v);
  const ItemRange range = RangeOfPart(tokens, 1, launch.part, launch.parts);
  for (int64_t t = range.begin; t < range.end; ++t) {
    const int64_t slot = all.position(t) % ops::kPagePositions;
    const float* key =
        static_cast<const float*>(launch.operands[In::kKeys]) + t * p.kv_heads * size;
    const float* value =
        static_cast<const float*>(launch.operands[In::kValues]) + t * p.kv_heads * size_v;
    if (const ops::CarriedToken* carried = all.carried(t); carried != nullptr) {
      CarriedRows(*carried, p.k_cache, size).Write(key, p.kv_heads, *p.half);
      CarriedRows(*carried, p.v_cache, size_v).Write(value, p.kv_heads, *p.half);
      continue;
    }
    auto* const page = reinterpret_cast<Cell*>(all.page(t));
    Cell* keys = page + p.args.k_offset + slot;
    Cell* values = page + p.args.v_offset + slot * stride_v;
    float* k_scales = reinterpret_cast<float*>(page) + p.args.k_scales + slot;
    float* v_scales = reinterpret_cast<float*>(page) + p.args.v_scales + slot;
    for (int64_t h = 0; h < p.kv_heads; ++h) {
      Store(key + h * size, size, keys + h * size * ops::kPagePositions, ops::kPagePositions,
            k_scales + h * ops::kPagePositions);
      Cell* to = values + h * ops::kPagePositions * stride_v;
      Store(value + h * size_v, size_v, to, 1, v_scales + h * ops::kPagePositions);
      std::fill(to + size_v, to + stride_v, Cell{0});
    }
  }
}

// `biases`: `span` numbers a head, distance 0 first.
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

// Returns the tokens of a unit that begins at `token`: of one sequence, side by side.
int64_t EndOfPagedTile(const PagedParams& p, const PagedTokens& all, int64_t token,
                       int64_t tokens) {
  int64_t end = token + 1;
  while (end < std::min(tokens, token + p.tile) && all.same_sequence(end, token)) ++end;
  return end;
}

int64_t CostOf(const PagedParams& p, const PagedTokens& all, int64_t begin, int64_t end) {
  const int64_t keys = all.position(end - 1) + 1;
  const int64_t seen = p.args.window > 0 ? std::min(keys, p.args.window + end - begin) : keys;
  return (end - begin) * (seen + ops::kPagePositions);
}

// Returns the keys that the unit after these tokens and this head looks at.
PagedNext NextOf(const PagedParams& p, const PagedTokens& all, int64_t begin, int64_t end,
                 int64_t tokens, int64_t kv_head) {
  const bool same = kv_head + 1 < p.kv_heads;
  const int64_t token = same ? begin : end, head = same ? kv_head + 1 : 0;
  if (token >= tokens || all.carried(token) != nullptr) return {};
  const int64_t position = all.position(token);
  const int64_t first = p.args.window > 0 ? std::max<int64_t>(0, position - p.args.window + 1) : 0;
  return {.pages = all.pages(token),
          .first_page = first / ops::kPagePositions,
          .last_page = position / ops::kPagePositions,
          .k_offset = p.args.k_offset + head * p.args.head_dim * ops::kPagePositions};
}

void RunPagedUnit(const LaunchArgs& launch, const PagedParams& p, int64_t begin, int64_t end,
                  int64_t tokens, int64_t kv_head) {
  const PagedTokens all(launch, p);
  PagedArgs args = p.args;
  args.scratch = static_cast<float*>(launch.operands[p.out + 1]) + launch.part * p.scratch_floats;
  const PagedKernels* kernels = p.kernels;
  if (const ops::CarriedToken* carried = all.carried(begin); carried != nullptr) {
    kernels = p.carried;
    args.keys = CarriedRows(*carried, p.k_cache, args.head_dim).head(kv_head);
    args.values = CarriedRows(*carried, p.v_cache, args.v_head_dim).head(kv_head);
    if (carried->sequence->half) args.widen = p.half->widen;
    args.positions = all.position(end - 1) + 1;  // Later ones are not written yet.
    args.tile = args.scratch + kMostPagedRows * args.scratch_stride;
  } else {
    if (p.append != nullptr) args.next = NextOf(p, all, begin, end, tokens, kv_head);
    args.pages = all.pages(begin);
    args.k_offset += kv_head * args.head_dim * ops::kPagePositions;
    args.v_offset += kv_head * ops::kPagePositions * ops::PagedValueStride(args.v_head_dim);
    args.k_scales += kv_head * ops::kPagePositions;
    args.v_scales += kv_head * ops::kPagePositions;
  }
  const auto* q = static_cast<const float*>(launch.operands[In::kQueries]);
  auto* out = static_cast<float*>(launch.operands[p.out]);
  const float* sinks = nullptr;
  if (p.has_sinks) sinks = static_cast<const float*>(launch.operands[In::kSinks]);
  PagedRow rows[kMostPagedRows];
  int64_t count = 0;
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t g = 0; g < p.group; ++g) {
      const int64_t head = kv_head * p.group + g;
      rows[count++] = {.q = q + (t * p.heads + head) * args.head_dim,
                       .out = out + (t * p.heads + head) * args.v_head_dim,
                       .position = all.position(t),
                       .slope = p.slopes.empty() ? 0 : p.slopes[head],
                       .biases = BiasesOf(p, head)};
      if (sinks != nullptr) rows[count - 1].sink = sinks[head];
      if (count < kernels->most_rows && (t + 1 < end || g + 1 < p.group)) continue;
      kernels->rows(args, rows, count);
      count = 0;
    }
  }
}

void Attend(const LaunchArgs& launch, const PagedParams& p, int64_t tokens) {
  const int parts = PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  const PagedTokens all(launch, p);
  const auto units_of = [&](int64_t token) -> CostedUnits {
    const int64_t end = EndOfPagedTile(p, all, token, tokens);
    return {p.kv_heads, CostOf(p, all, token, end), end};
  };
  ForShareOfCost(tokens, launch.part, parts, units_of, [&](int64_t token, int64_t h, int64_t last) {
    const int64_t end = EndOfPagedTile(p, all, token, tokens);
    for (; h < last; ++h) RunPagedUnit(launch, p, token, end, tokens, h);
  });
}

void RunPagedAttention(const LaunchArgs& launch) {
  const auto& p = *static_cast<const PagedParams*>(launch.params);
  const int64_t tokens = PagedTokens(launch, p).live(LiveOf(p.tokens, p.batch_rows, *launch.frame));
  if (p.append != nullptr && launch.phase == 0) {
    p.append(launch, p, tokens);
  } else {
    Attend(launch, p, tokens);
  }
}

// `reads_only`: reprise.PagedCrossAttention, whose keys and values other code writes.
std::vector<Candidate> PlanPages(const CpuTarget& target, const NodeView& node, bool reads_only) {
  const Attributes& attributes = node.attributes();
  PagedParams p;
  p.tokens = node.shape(In::kQueries)[0];
  p.batch_rows = node.batch_rows();
  if (reads_only) {
    p.positions = PagedCrossAttentionOp::kLengths;
    p.tables = PagedCrossAttentionOp::kTables;
    p.to_last = -1;
  } else {
    p.has_sinks = node.has_input(In::kSinks);
  }
  p.out = static_cast<size_t>(node.num_inputs());
  p.heads = attributes.Int("num_heads", 1);
  p.kv_heads = attributes.Int("kv_heads", 1);
  p.group = p.heads / p.kv_heads;
  const auto dtype = static_cast<ops::CacheDType>(attributes.Int("cache_dtype", 0));
  const int64_t head_dim = node.shape(In::kQueries)[2] / p.heads;
  const bool rounds =
      !reads_only &&
      attributes.String(kPrecisionAttribute, "") == PrecisionName(Precision::kBf16) &&
      RoundsPages(target.isa) && head_dim <= kMostRoundedHead;
  p.kernels = &PagedKernelsFor(target.isa, dtype, rounds);
  p.carried = &CarriedKernelsFor(target.isa, rounds);
  p.half = &HalfKernelsFor(target.isa, DType::kFloat16);
  p.k_cache = attributes.Int("k_cache", 0);
  p.v_cache = attributes.Int("v_cache", 0);
  p.append = reads_only                            ? nullptr
             : dtype == ops::CacheDType::kFloat32  ? Append<float>
             : dtype == ops::CacheDType::kBFloat16 ? Append<uint16_t>
                                                   : Append<int8_t>;
  p.tile = std::max<int64_t>(1, p.kernels->most_rows / p.group);
  p.scratch_parts = target.scratch_parts;
  const int64_t context = attributes.Int("context", 0);
  p.args = {.transpose = TransposeFor(target.isa),
            .k_offset = attributes.Int("k_offset", 0),
            .v_offset = attributes.Int("v_offset", 0),
            .k_scales = attributes.Int("k_scales", 0),
            .v_scales = attributes.Int("v_scales", 0),
            .head_dim = head_dim,
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
  p.scratch_floats = kMostPagedRows * p.args.scratch_stride;
  if (!reads_only) p.scratch_floats += PagedTileFloats(p.args.head_dim, p.args.v_head_dim);
  const double pairs = static_cast<double>(p.tokens * p.heads) * static_cast<double>(context) / 2;
  Candidate candidate = MakeCandidate(
      target, node, reads_only ? "paged_cross_attention" : "paged_attention", RunPagedAttention, p,
      2 * pairs * static_cast<double>(p.args.head_dim + p.args.v_head_dim));
  if (rounds) candidate.option.kernel = "paged_attention_bf16";
  candidate.option.takes_live_rows = p.batch_rows > 0;
  candidate.option.workspace_bytes =
      sizeof(float) * static_cast<size_t>(p.scratch_floats * p.scratch_parts);
  candidate.bound.phases = reads_only ? 1 : 2;
  candidate.bound.detail = absl::StrCat(
      p.tokens, " tokens, ", p.heads, " heads over ", p.kv_heads, ", head dim ", p.args.head_dim,
      p.args.window > 0 ? absl::StrCat(", window ", p.args.window) : "");
  return {std::move(candidate)};
}

}  // namespace

std::vector<Candidate> PlanPagedAttention(const CpuTarget& target, const NodeView& node) {
  return PlanPages(target, node, /*reads_only=*/false);
}

std::vector<Candidate> PlanPagedCrossAttention(const CpuTarget& target, const NodeView& node) {
  return PlanPages(target, node, /*reads_only=*/true);
}

}  // namespace reprise::cpu

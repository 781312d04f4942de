// TopK of floats: one comparison of integers orders value and place together.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "runtime/device/cpu/plan.h"

namespace reprise::cpu {
namespace {

// x seen as [outer, size, inner].
struct TopKParams {
  int64_t outer = 0, size = 0, inner = 0, k = 0;
  bool largest = true;
  int values = -1, places = -1, workspace = 0;  // operands; -1: nobody wants it
  int64_t scratch_words = 0;
  int scratch_parts = 0;
};

// Ascending as numbers are: zeros of both signs are one, NaNs are one and above all others.
uint32_t OrderOf(float x) {
  if (x != x) return std::numeric_limits<uint32_t>::max();
  const auto bits = std::bit_cast<uint32_t>(x == 0 ? 0.0f : x);
  constexpr uint32_t kSign = uint32_t{1} << 31;
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

void RunTopK(const LaunchArgs& launch) {
  const auto& p = *static_cast<const TopKParams*>(launch.params);
  const auto* x = static_cast<const float*>(launch.operands[0]);
  auto* values = p.values < 0 ? nullptr : static_cast<float*>(launch.operands[p.values]);
  auto* places = p.places < 0 ? nullptr : static_cast<int64_t*>(launch.operands[p.places]);
  const int64_t rows = p.outer * p.inner;
  const int parts =
      static_cast<int>(std::min<int64_t>(rows, PartsWithScratch(launch, p.scratch_parts)));
  if (launch.part >= parts) return;
  uint64_t* order =
      static_cast<uint64_t*>(launch.operands[p.workspace]) + launch.part * p.scratch_words;
  const ItemRange range = RangeOfPart(rows, 1, launch.part, parts);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const int64_t o = row / p.inner, i = row % p.inner;
    const float* from = x + o * p.size * p.inner + i;
    // The places below: of equal values the first comes first.
    for (int64_t j = 0; j < p.size; ++j) {
      const uint32_t value = OrderOf(from[j * p.inner]);
      order[j] = uint64_t{p.largest ? ~value : value} << 32 | static_cast<uint64_t>(j);
    }
    if (p.k < p.size) std::nth_element(order, order + p.k, order + p.size);
    std::sort(order, order + p.k);
    for (int64_t j = 0; j < p.k; ++j) {
      const auto place = static_cast<int64_t>(order[j] & std::numeric_limits<uint32_t>::max());
      const int64_t to = (o * p.k + j) * p.inner + i;
      if (values != nullptr) values[to] = from[place * p.inner];
      if (places != nullptr) places[to] = place;
    }
  }
}

}  // namespace

std::vector<Candidate> PlanTopK(const CpuTarget& target, const NodeView& node) {
  const absl::StatusOr<int64_t> axis =
      NormalizeAxis(node.attributes().Int("axis", -1), node.rank(0));
  if (node.dtype(0) != DType::kFloat32 || !axis.ok()) return {};
  const absl::Span<const int64_t> shape = node.shape(0);
  TopKParams p;
  p.outer = NumElements(shape.first(*axis));
  p.size = shape[*axis];
  p.inner = NumElements(shape.subspan(*axis + 1));
  p.largest = node.attributes().Int("largest", 1) != 0;
  if (p.size > std::numeric_limits<int32_t>::max() || p.outer * p.inner == 0) return {};
  const Node& of = node.node();
  int operand = static_cast<int>(node.num_inputs());
  for (size_t i = 0; i < of.outputs.size(); ++i) {
    if (of.outputs[i] != kNone) {
      (i == 0 ? p.values : p.places) = operand;
      p.k = node.out_shape(i)[*axis];
    }
    ++operand;
  }
  p.workspace = operand;
  p.scratch_words = p.size;
  p.scratch_parts = target.scratch_parts;
  Candidate candidate =
      MakeCandidate(target, node, "top_k", RunTopK, p, static_cast<double>(NumElements(shape)));
  candidate.option.workspace_bytes =
      sizeof(uint64_t) * p.scratch_words *
      std::min<int64_t>(p.outer * p.inner, static_cast<int64_t>(p.scratch_parts));
  return {std::move(candidate)};
}

}  // namespace reprise::cpu

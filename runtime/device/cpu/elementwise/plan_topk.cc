// TopK of floats and doubles: one comparison of integers orders value and place together. Where k
// is small and the row long, most elements are skipped: those that are not beyond the last one of
// the best so far.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "runtime/device/cpu/elementwise/arg_extremes.h"
#include "runtime/device/cpu/elementwise/elementwise_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/reduce/arg_op.h"

namespace reprise::cpu {
namespace {

// x seen as [outer, size, inner].
struct TopKParams {
  const PlaceKernels* kernels = nullptr;
  int64_t outer = 0, size = 0, inner = 0, k = 0;
  bool largest = true;
  int values = -1, places = -1, workspace = 0;  // operands; -1: not requested
  int64_t scratch_keys = 0;                     // that many elements are ordered at a time
  int scratch_parts = 0;
};

// Elements that wait to be ordered, besides the best k.
constexpr int64_t kWaiting = 64;

// The key that orders the elements of a row: the value, above the place, which is below 2^31.
template <typename T>
struct KeyTypes;
template <>
struct KeyTypes<float> {
  using Bits = uint32_t;
  using Key = uint64_t;
};
template <>
struct KeyTypes<double> {
  using Bits = uint64_t;
  using Key = unsigned __int128;
};
constexpr int kPlaceBits = 32;

// Ascending as numbers are: zeros of both signs are one, NaNs are one and above all others.
template <typename T>
typename KeyTypes<T>::Bits OrderOf(T x) {
  using Bits = typename KeyTypes<T>::Bits;
  if (x != x) return std::numeric_limits<Bits>::max();
  const auto bits = std::bit_cast<Bits>(x == 0 ? T{0} : x);
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

// Orders by value, of equal ones by place.
template <typename T>
typename KeyTypes<T>::Key KeyOf(bool largest, T x, int64_t place) {
  using Bits = typename KeyTypes<T>::Bits;
  const Bits value = OrderOf(x);
  const Bits first = largest ? static_cast<Bits>(~value) : value;
  return typename KeyTypes<T>::Key{first} << kPlaceBits | static_cast<uint32_t>(place);
}
template <typename Key>
int64_t PlaceOfKey(Key key) {
  return static_cast<int64_t>(static_cast<uint32_t>(key));
}

int64_t FirstBeyond(const TopKParams& p, const float* row, int64_t next, float bound) {
  return p.kernels->first_beyond(p.largest, row, next, p.size, bound);
}
int64_t FirstBeyond(const TopKParams& p, const double* row, int64_t next, double bound) {
  while (next < p.size && (p.largest ? row[next] <= bound : row[next] >= bound)) ++next;
  return next;
}

// Finds the keys of the best k of a row whose elements are `inner` apart, at `keys`, in any order.
template <typename T>
void FindBest(const TopKParams& p, const T* row, typename KeyTypes<T>::Key* keys) {
  using Key = typename KeyTypes<T>::Key;
  int64_t count = p.scratch_keys;
  for (int64_t j = 0; j < count; ++j) keys[j] = KeyOf(p.largest, row[j * p.inner], j);
  for (int64_t next = count;;) {
    if (p.k < count) std::nth_element(keys, keys + p.k - 1, keys + count);
    if (next == p.size) return;
    // Among equals the first is better, so a later element needs a smaller value in its key.
    const Key last = keys[p.k - 1];
    const T bound = row[PlaceOfKey(last)];
    for (count = p.k; count < p.scratch_keys; ++next) {
      next = FirstBeyond(p, row, next, bound);
      if (next == p.size) break;
      const Key key = KeyOf(p.largest, row[next], next);
      if (key < last) keys[count++] = key;
    }
  }
}

template <typename T>
void RunTopK(const LaunchArgs& launch) {
  using Key = typename KeyTypes<T>::Key;
  const auto& p = *static_cast<const TopKParams*>(launch.params);
  const auto* x = static_cast<const T*>(launch.operands[0]);
  auto* values = p.values < 0 ? nullptr : static_cast<T*>(launch.operands[p.values]);
  auto* places = p.places < 0 ? nullptr : static_cast<int64_t*>(launch.operands[p.places]);
  const int64_t rows = p.outer * p.inner;
  const int parts =
      static_cast<int>(std::min<int64_t>(rows, PartsWithScratch(launch, p.scratch_parts)));
  if (launch.part >= parts) return;
  Key* order = static_cast<Key*>(launch.operands[p.workspace]) + launch.part * p.scratch_keys;
  const ItemRange range = RangeOfPart(rows, 1, launch.part, parts);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const int64_t o = row / p.inner, i = row % p.inner;
    const T* from = x + o * p.size * p.inner + i;
    FindBest(p, from, order);
    std::sort(order, order + p.k);
    for (int64_t j = 0; j < p.k; ++j) {
      const int64_t place = PlaceOfKey(order[j]);
      const int64_t to = (o * p.k + j) * p.inner + i;
      if (values != nullptr) values[to] = from[place * p.inner];
      if (places != nullptr) places[to] = place;
    }
  }
}

}  // namespace

std::vector<Candidate> PlanTopK(const CpuTarget& target, const NodeView& node) {
  const absl::StatusOr<int64_t> axis =
      NormalizeAxis(TopKOp::From(node.attributes()).axis, node.rank(0));
  const bool doubles = node.dtype(0) == DType::kFloat64;
  if ((node.dtype(0) != DType::kFloat32 && !doubles) || !axis.ok()) return {};
  const absl::Span<const int64_t> shape = node.shape(0);
  TopKParams p;
  p.outer = NumElements(shape.first(*axis));
  p.size = shape[*axis];
  p.inner = NumElements(shape.subspan(*axis + 1));
  p.largest = TopKOp::From(node.attributes()).largest;
  if (p.size > std::numeric_limits<int32_t>::max() || p.outer * p.inner == 0) return {};
  p.kernels = &PlaceKernelsFor(target.isa);
  const Node& of = node.node();
  int operand = static_cast<int>(node.num_inputs());
  for (size_t i = 0; i < of.outputs.size(); ++i) {
    if (of.outputs[i] != kNone) {
      (i == 0 ? p.values : p.places) = operand;
      p.k = node.out_shape(i)[*axis];
    }
    ++operand;
  }
  if (p.k == 0) return {};
  p.workspace = operand;
  p.scratch_keys = p.inner > 1 ? p.size : std::min(p.size, 2 * p.k + kWaiting);
  p.scratch_parts = target.scratch_parts;
  const KernelFn run = doubles ? RunTopK<double> : RunTopK<float>;
  Candidate candidate =
      MakeCandidate(target, node, "top_k", run, p, static_cast<double>(NumElements(shape)));
  const size_t key_bytes = doubles ? sizeof(KeyTypes<double>::Key) : sizeof(KeyTypes<float>::Key);
  candidate.option.workspace_bytes =
      key_bytes * p.scratch_keys *
      std::min<int64_t>(p.outer * p.inner, static_cast<int64_t>(p.scratch_parts));
  return {std::move(candidate)};
}

}  // namespace reprise::cpu

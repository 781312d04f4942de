// Ops that keep some elements in their order and fill the places of others: Pad, Trilu.
#include <algorithm>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/device/cpu/movement/movement_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/movement/slice_pad.h"

namespace reprise::cpu {
namespace {

constexpr int64_t kFill = -1;

// Rows are the last dim of the result.
struct PadParams {
  // For each dim but the last, by position in the result: the offset of the input element that it
  // begins with, counted along that dim; kFill: none.
  std::vector<std::vector<int64_t>> sources;
  // The same for the last dim; positions [begin, end) lie side by side in the input.
  std::vector<int64_t> last;
  int64_t begin = 0, end = 0;
  int64_t rows = 0, columns = 0;
  int fill_operand = 0;  // 0: none, the fill value is 0
  int out = 0;
};

template <class T>
void RunPad(const LaunchArgs& launch) {
  const auto& p = *static_cast<const PadParams*>(launch.params);
  const T* from = static_cast<const T*>(launch.operands[0]);
  const T fill =
      p.fill_operand == 0 ? T(0) : *static_cast<const T*>(launch.operands[p.fill_operand]);
  T* to = static_cast<T*>(launch.operands[p.out]);
  const ItemRange range = RangeOfPart(p.rows, 1, launch.part, launch.parts);
  for (int64_t row = range.begin; row < range.end; ++row) {
    int64_t rest = row, offset = 0;
    for (size_t d = p.sources.size(); d-- > 0 && offset != kFill;) {
      const auto size = static_cast<int64_t>(p.sources[d].size());
      const int64_t source = p.sources[d][rest % size];
      offset = source == kFill ? kFill : offset + source;
      rest /= size;
    }
    T* const y = to + row * p.columns;
    if (offset == kFill) {
      std::fill_n(y, p.columns, fill);
      continue;
    }
    const T* const x = from + offset;
    const auto each = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = p.last[i] == kFill ? fill : x[p.last[i]];
    };
    each(0, p.begin);
    if (p.begin < p.end) std::copy_n(x + p.last[p.begin], p.end - p.begin, y + p.begin);
    each(p.end, p.columns);
  }
}

struct TriluParams {
  int64_t rows = 0, columns = 0;  // the size of one matrix
  int64_t all_rows = 0;
  bool upper = true;
  int shift_operand = 0;  // 0: none
  int out = 0;
};

template <class T>
void RunTrilu(const LaunchArgs& launch) {
  const auto& p = *static_cast<const TriluParams*>(launch.params);
  const T* from = static_cast<const T*>(launch.operands[0]);
  T* to = static_cast<T*>(launch.operands[p.out]);
  const int64_t given =
      p.shift_operand == 0 ? 0 : *static_cast<const int64_t*>(launch.operands[p.shift_operand]);
  // Beyond the corners it makes no difference.
  const int64_t shift = std::clamp(given, -p.rows, p.columns);
  const ItemRange range = RangeOfPart(p.all_rows, 1, launch.part, launch.parts);
  for (int64_t row = range.begin; row < range.end; ++row) {
    // Kept are the columns before `border`, or from there on.
    const int64_t diagonal = row % p.rows + shift;
    const int64_t border = std::clamp<int64_t>(p.upper ? diagonal : diagonal + 1, 0, p.columns);
    const T* const x = from + row * p.columns;
    T* const y = to + row * p.columns;
    const int64_t begin = p.upper ? border : 0, end = p.upper ? p.columns : border;
    if (x != y) std::copy(x + begin, x + end, y + begin);
    std::fill(y, y + begin, T(0));
    std::fill(y + end, y + p.columns, T(0));
  }
}

// Sizes of a result that together are more than this are left to the reference kernel: a place
// takes more bytes in the tables than an element in the result, and data may say how many there
// are.
constexpr int64_t kMostPlaces = int64_t{1} << 23;

// Returns the integers of a constant input; empty where it is left out; none where they are not
// known.
std::optional<std::vector<int64_t>> KnownInts(const NodeView& node, size_t i) {
  if (!node.has_input(i)) return std::vector<int64_t>();
  if (node.constant(i) == nullptr) return std::nullopt;
  absl::StatusOr<std::vector<int64_t>> values = node.constant(i)->ToInt64s();
  if (!values.ok()) return std::nullopt;
  return *std::move(values);
}

}  // namespace

std::vector<Candidate> PlanPad(const CpuTarget& target, const NodeView& node) {
  const Shape& in = node.shape(0);
  const Shape& out = node.out_shape();
  const std::optional<std::vector<int64_t>> pads = KnownInts(node, 1);
  std::optional<std::vector<int64_t>> axes = KnownInts(node, 3);
  if (!pads.has_value() || !axes.has_value() || in.empty() || NumElements(out) == 0) return {};
  // A value of another dtype, or none, is for the reference.
  if (node.has_input(2) && (node.dtype(2) != node.dtype(0) || NumElements(node.shape(2)) == 0)) {
    return {};
  }
  if (!node.has_input(3)) {
    for (int64_t d = 0; d < node.rank(0); ++d) axes->push_back(d);
  }
  if (pads->size() != 2 * axes->size()) return {};
  std::vector<int64_t> begins(in.size(), 0), ends(in.size(), 0);
  for (size_t i = 0; i < axes->size(); ++i) {
    const absl::StatusOr<int64_t> axis = NormalizeAxis((*axes)[i], node.rank(0));
    if (!axis.ok()) return {};
    begins[*axis] = (*pads)[i];
    ends[*axis] = (*pads)[i + axes->size()];
  }
  if (absl::c_accumulate(out, int64_t{0}) > kMostPlaces) return {};
  const std::string mode = node.attributes().String("mode", "constant");
  const Shape strides = Strides(in);
  PadParams params;
  for (size_t d = 0; d < in.size(); ++d) {
    std::vector<int64_t> sources;
    sources.reserve(static_cast<size_t>(out[d]));
    for (int64_t i = 0; i < out[d]; ++i) {
      const int64_t source = ops::PaddedDim{in[d], begins[d], ends[d]}.Source(mode, i);
      sources.push_back(source < 0 ? kFill : source * strides[d]);
    }
    params.sources.push_back(std::move(sources));
  }
  params.last = std::move(params.sources.back());
  params.sources.pop_back();
  params.columns = out.back();
  params.rows = NumElements(out) / params.columns;
  params.begin = std::clamp<int64_t>(begins.back(), 0, params.columns);
  params.end = std::clamp<int64_t>(begins.back() + in.back(), params.begin, params.columns);
  params.fill_operand = node.has_input(2) ? 2 : 0;
  params.out = static_cast<int>(node.num_inputs());
  KernelFn run = nullptr;
  ops::DispatchSize(node.out_dtype(), [&]<typename T>() { run = RunPad<T>; });
  if (run == nullptr) return {};
  return {MakeCandidate(target, node, "pad", run, std::move(params), 0)};
}

std::vector<Candidate> PlanTrilu(const CpuTarget& target, const NodeView& node) {
  const Shape& shape = node.shape(0);
  if (NumElements(shape) == 0 ||
      (node.has_input(1) && (node.dtype(1) != DType::kInt64 || NumElements(node.shape(1)) == 0))) {
    return {};
  }
  TriluParams params;
  params.columns = shape[shape.size() - 1];
  params.rows = shape[shape.size() - 2];
  params.all_rows = NumElements(shape) / params.columns;
  params.upper = node.attributes().Int("upper", 1) != 0;
  params.shift_operand = node.has_input(1) ? 1 : 0;
  params.out = static_cast<int>(node.num_inputs());
  KernelFn run = nullptr;
  ops::DispatchSize(node.out_dtype(), [&]<typename T>() { run = RunTrilu<T>; });
  if (run == nullptr) return {};
  Candidate candidate = MakeCandidate(target, node, "trilu", run, params, 0);
  candidate.option.in_place = 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu

#include "runtime/passes/paged/past_values.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

constexpr double kLargestOffset = 1024;

bool IsNumber(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kFloat32;
}

}  // namespace

const Tensor* PastValues::ConstantAt(const PastTrace& at, ValueId value) {
  const auto& known = at.trace.constants;
  if (value == kNone || value >= static_cast<ValueId>(known.size())) return nullptr;
  return known[value].has_value() ? &*known[value] : nullptr;
}

std::optional<Shape> PastValues::ShapeAt(const PastTrace& at, ValueId value) {
  const auto& shapes = at.trace.shapes;
  if (value == kNone || value >= static_cast<ValueId>(shapes.size())) return std::nullopt;
  return shapes[value];
}

std::optional<Shape> PastValues::ShapeOf(ValueId value) const {
  const std::optional<Shape> a = ShapeAt(a_, value), b = ShapeAt(b_, value);
  return a == b ? a : std::nullopt;
}

std::optional<int64_t> PastValues::GrowingDim(ValueId value) const {
  const std::optional<Shape> a = ShapeAt(a_, value), b = ShapeAt(b_, value);
  if (!a.has_value() || !b.has_value() || a->size() != b->size()) return std::nullopt;
  std::optional<int64_t> growing;
  for (size_t dim = 0; dim < a->size(); ++dim) {
    if ((*a)[dim] == (*b)[dim]) continue;
    if (growing.has_value() || (*b)[dim] - (*a)[dim] != b_.past - a_.past) return std::nullopt;
    growing = static_cast<int64_t>(dim);
  }
  return growing;
}

bool PastValues::IsStatic(ValueId value) {
  if (value == kNone || IsKnown(value) || IsWeight(graph_, value)) return true;
  if (const auto found = static_.find(value); found != static_.end()) return found->second;
  bool result = false;
  if (const NodeId producer = ProducerOf(graph_, value); producer != kNone) {
    const Node& node = graph_.node(producer);
    const OpRow* row = FindOp(node.op);
    result = row != nullptr && !row->Has(kNoFold) && !node.inputs.empty() &&
             absl::c_all_of(node.inputs, [&](ValueId input) { return IsStatic(input); });
  }
  static_[value] = result;
  return result;
}

bool PastValues::Depends(ValueId value) {
  if (value == kNone || IsWeight(graph_, value)) return false;
  if (IsKnown(value)) {
    const Tensor &a = *ConstantAt(a_, value), &b = *ConstantAt(b_, value);
    return a.shape() != b.shape() || !(a == b);
  }
  if (const auto found = depends_.find(value); found != depends_.end()) return found->second;
  bool result = false;
  if (IsStatic(value)) {
    const Node& node = graph_.node(ProducerOf(graph_, value));
    result = absl::c_any_of(node.inputs, [&](ValueId input) { return Depends(input); });
  }
  depends_[value] = result;
  return result;
}

std::optional<double> PastValues::OffsetOf(ValueId value) const {
  if (!IsKnown(value)) return std::nullopt;
  const Tensor &a = *ConstantAt(a_, value), &b = *ConstantAt(b_, value);
  if (a.shape() != b.shape() || !IsNumber(a.dtype()) || a.num_elements() == 0) return std::nullopt;
  const std::vector<double> at_a = a.ToDoubles(), at_b = b.ToDoubles();
  const double offset = at_a[0] - static_cast<double>(a_.past);
  const auto holds = [offset](const std::vector<double>& values, int64_t past) {
    return absl::c_all_of(values,
                          [&](double one) { return one == static_cast<double>(past) + offset; });
  };
  if (std::abs(offset) > kLargestOffset || std::floor(offset) != offset || !holds(at_a, a_.past) ||
      !holds(at_b, b_.past)) {
    return std::nullopt;
  }
  return offset;
}

std::optional<PastValues::Begin> PastValues::BeginOf(const Node& slice, int64_t axis) const {
  int64_t begins[2];
  for (const bool second : {false, true}) {
    const PastTrace& at = second ? b_ : a_;
    const std::optional<Shape> shape = ShapeAt(at, slice.inputs[SliceOp::kX]);
    const Tensor* starts = ConstantAt(at, slice.input(SliceOp::kStarts));
    const Tensor* axes = ConstantAt(at, slice.input(SliceOp::kAxes));
    const Tensor* steps = ConstantAt(at, slice.input(SliceOp::kSteps));
    if (!shape.has_value() || starts == nullptr) return std::nullopt;
    if (slice.input(SliceOp::kAxes) != kNone && axes == nullptr) return std::nullopt;
    if (slice.input(SliceOp::kSteps) != kNone && steps == nullptr) return std::nullopt;
    const auto rank = static_cast<int64_t>(shape->size());
    const std::vector<double> places = starts->ToDoubles();
    int64_t begin = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      int64_t of =
          axes == nullptr ? static_cast<int64_t>(i) : static_cast<int64_t>(axes->ToDoubles()[i]);
      if (of < 0) of += rank;
      if (of < 0 || of >= rank) return std::nullopt;
      if (steps != nullptr && steps->ToDoubles()[i] != 1) return std::nullopt;
      const int64_t size = (*shape)[of];
      const double place = places[i] < 0 ? places[i] + static_cast<double>(size) : places[i];
      if (of == axis) begin = static_cast<int64_t>(std::clamp<double>(place, 0, size));
    }
    begins[second ? 1 : 0] = begin;
  }
  if (begins[0] == begins[1]) return Begin{.place = begins[0]};
  if (begins[1] - begins[0] != b_.past - a_.past) return std::nullopt;
  return Begin{.place = begins[0] - a_.past, .from_past = true};
}

}  // namespace reprise

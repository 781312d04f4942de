// Axis rules of ops whose element i depends on element i of their operands.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/algorithm/container.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

using Source = AxisFlowValue::Source;

constexpr int64_t kScalarBytes = 1024;
// Integers beyond this are not exact as double.
constexpr double kExact = 9e15;
std::optional<Tensor> ScalarOf(DType dtype, double value) {
  std::optional<Tensor> scalar;
  if (!IsFloating(dtype) && !(std::abs(value) <= kExact)) return std::nullopt;
  const absl::Status known = Dispatch(AllList(), dtype, [&]<typename T>() {
    scalar = Tensor::Make(
        dtype, {}, [&](void* data) { *static_cast<T*>(data) = ConvertTo<T, double>(value); });
  });
  return known.ok() ? scalar : std::nullopt;
}

// Returns the value of operand `i` where the result's dim `dim` is padding.
PaddingValue PaddingAt(const AxisContext& context, size_t i, int64_t dim) {
  const int64_t own = dim - (context.output_rank() - context.rank(i));
  if (const Positions* positions = own >= 0 ? context.input(i).At(own) : nullptr) {
    return positions->padding;
  }
  const std::optional<double> uniform = context.Uniform(i);
  return uniform.has_value() ? PaddingValue(*uniform) : std::nullopt;
}

// Returns the op over scalars, where all of them are known.
std::optional<double> ComputeScalar(const AxisContext& context,
                                    absl::Span<const PaddingValue> paddings) {
  std::vector<std::optional<Tensor>> scalars;
  for (size_t i = 0; i < paddings.size(); ++i) {
    scalars.emplace_back();
    if (!context.has_input(i)) continue;
    if (!paddings[i].has_value()) return std::nullopt;
    scalars.back() = ScalarOf(context.dtype(i), *paddings[i]);
    if (!scalars.back().has_value()) return std::nullopt;
  }
  const auto results = Evaluate(context.node(), scalars, kScalarBytes);
  if (!results.ok() || results->empty() || (*results)[0].num_elements() != 1) return std::nullopt;
  return (*results)[0].ToDoubles()[0];
}

PaddingValue Combine(const AxisContext& context, absl::Span<const PaddingValue> paddings) {
  if (const auto known = ComputeScalar(context, paddings)) return known;
  const std::string& op = context.node().op;
  const auto any_is = [&](double value) {
    return absl::c_any_of(paddings, [&](const PaddingValue& one) { return one == value; });
  };
  // Rows of other requests may hold infinities, which times 0 are no number.
  const bool may_be_infinite = context.is_batch() && IsFloating(context.dtype(0));
  const bool takes_out = op == AndOp::kName || (op == MulOp::kName && !may_be_infinite);
  if (takes_out && any_is(0)) return 0;
  if (op == OrOp::kName && any_is(1)) return 1;
  if (op == WhereOp::kName) {
    if (paddings[0].has_value()) return paddings[*paddings[0] != 0 ? 1 : 2];
    if (paddings[1].has_value() && paddings[1] == paddings[2]) return paddings[1];
  }
  if (op != AddOp::kName && op != SubOp::kName) return std::nullopt;
  // An infinite number stays what it is, whatever is added, but for other infinities.
  const auto stays = [&](size_t i) {
    return paddings[i].has_value() && std::isinf(*paddings[i]) && !paddings[1 - i].has_value() &&
           !context.MayBeInfinite(1 - i);
  };
  if (stays(0)) return paddings[0];
  if (stays(1)) return op == AddOp::kName ? *paddings[1] : -*paddings[1];
  return std::nullopt;
}

// Returns whether the scale of a whole tensor follows the length: "divides by the length".
bool ScalesBySize(const AxisContext& context) {
  bool by_size = false, data = false;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    const AxisFlowValue& flow = context.input(i);
    by_size = by_size || (flow.follows_size && flow.along.empty() && IsFloating(context.dtype(i)));
    data = data || flow.source == Source::kData;
  }
  return by_size && data;
}

}  // namespace

void ElementwiseAxis(AxisContext& context) {
  if (ScalesBySize(context)) {
    context.Mix("computes with a number that depends on the length of");
  }
  AxisFlowValue flow;
  for (int64_t dim = 0; dim < context.output_rank(); ++dim) {
    Positions joint = {.dim = dim};
    bool found = false, apart = false;
    std::vector<PaddingValue> paddings;
    for (size_t i = 0; i < context.num_inputs(); ++i) {
      const int64_t own = dim - (context.output_rank() - context.rank(i));
      const Positions* positions = own >= 0 ? context.input(i).At(own) : nullptr;
      paddings.push_back(PaddingAt(context, i, dim));
      if (positions == nullptr) {
        // An operand with something per element, where the positions of another operand lie.
        const bool meets = own >= 0 && context.has_input(i) && context.shape(i)[own] > 1;
        joint.moved = joint.moved || meets;
        apart = apart || meets;
        continue;
      }
      const bool alike = positions->inner == joint.inner && positions->repeated == joint.repeated &&
                         positions->extent == joint.extent && positions->parts == joint.parts &&
                         positions->compact == joint.compact;
      apart = apart || (found && !alike);
      if (found && !alike) {
        context.Doubt("sets elements beside each other that need not be of the same position of");
        joint.moved = true;
      }
      if (!found) joint.inner = positions->inner;
      if (!found) joint.extent = positions->extent;
      if (!found) joint.parts = positions->parts;
      if (!found) joint.compact = positions->compact;
      joint.repeated = joint.repeated || positions->repeated;
      found = true;
      joint.moved = joint.moved || positions->moved;
    }
    if (!found) continue;
    if (apart) {
      if (joint.IsJoined()) context.Doubt("sets elements beside joined ones of");
      joint.parts.clear();
      joint.compact = false;
    }
    joint.padding = Combine(context, paddings);
    for (size_t i = 0; i < context.num_inputs(); ++i) {
      const int64_t own = dim - (context.output_rank() - context.rank(i));
      if (context.node().op != MulOp::kName || joint.padding != 0) break;
      if (own >= 0 && context.MayBeInfiniteAt(i, own)) context.Doubt(kTakesOut);
      const bool is_along = own >= 0 && context.input(i).At(own) != nullptr;
      if (!is_along && context.MayBeInfinite(i)) joint.padding.reset();
    }
    flow.along.push_back(joint);
  }
  context.Set(0, std::move(flow));
}

void KnownAxis(AxisContext&) {}

void UnknownAxis(AxisContext& context) {
  if (context.AnyPositions()) context.Doubt("relates positions in a way that is not known, of");
}

}  // namespace reprise::ops

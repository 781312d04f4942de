// Axis rules of ops whose element i depends on element i of their operands, and the changes of a
// mask on its way through them.
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
  return uniform.has_value() ? PaddingValue::Constant(*uniform) : PaddingValue::Unknown();
}

// Returns the op over scalars, where all of them are known.
std::optional<double> ComputeScalar(const AxisContext& context,
                                    absl::Span<const PaddingValue> paddings) {
  std::vector<std::optional<Tensor>> scalars;
  for (size_t i = 0; i < paddings.size(); ++i) {
    scalars.emplace_back();
    if (!context.has_input(i)) continue;
    if (paddings[i].kind != PaddingValue::Kind::kConstant) return std::nullopt;
    scalars.back() = ScalarOf(context.dtype(i), paddings[i].value);
    if (!scalars.back().has_value()) return std::nullopt;
  }
  const auto results = Evaluate(context.node(), scalars, kScalarBytes);
  if (!results.ok() || results->empty() || (*results)[0].num_elements() != 1) return std::nullopt;
  return (*results)[0].ToDoubles()[0];
}

PaddingValue LowOrUnknown(double depth) {
  return depth < 0 ? PaddingValue::Low(depth) : PaddingValue::Unknown();
}

// a + sign * b. A subtrahend must be known itself: low numbers become high ones.
PaddingValue LowSum(const PaddingValue& a, double sign, const PaddingValue& b) {
  if (sign < 0 && b.kind == PaddingValue::Kind::kLow) return PaddingValue::Unknown();
  double depth = std::min(a.Depth().value_or(0), 0.0);
  if (b.kind != PaddingValue::Kind::kUnknown) depth += std::min(sign * b.value, 0.0);
  return LowOrUnknown(depth);
}

PaddingValue Scaled(const PaddingValue& low, const PaddingValue& by, bool divide) {
  const bool known = low.kind == PaddingValue::Kind::kLow &&
                     by.kind == PaddingValue::Kind::kConstant && by.value > 0;
  if (!known) return PaddingValue::Unknown();
  return LowOrUnknown(divide ? low.value / by.value : low.value * by.value);
}

// Returns the padding after a function that never falls: as low as the function makes the low
// number itself. A soft cap after a mask leaves a mask as low as the cap.
std::optional<PaddingValue> Bent(const AxisContext& context,
                                 absl::Span<const PaddingValue> paddings) {
  if (!FactsOf(context.node().op).Is(kNeverFalls)) return std::nullopt;
  std::vector<PaddingValue> at(paddings.begin(), paddings.end());
  bool any_low = false;
  for (PaddingValue& one : at) {
    if (one.kind == PaddingValue::Kind::kUnknown) return PaddingValue::Unknown();
    any_low = any_low || one.kind == PaddingValue::Kind::kLow;
    one.kind = PaddingValue::Kind::kConstant;
  }
  if (!any_low) return std::nullopt;
  const std::optional<double> depth = ComputeScalar(context, at);
  return depth.has_value() ? LowOrUnknown(*depth) : PaddingValue::Unknown();
}

// Ids compared with the value of their padding tell where padding is: a mask.
bool TellsPadding(const AxisContext& context) {
  if (!IsComparison(context.node().op)) return false;
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<double> with = context.Uniform(1 - i);
    const AxisFlowValue& flow = context.input(i);
    const bool tells = with.has_value() && !IsFloating(context.dtype(i)) && !flow.along.empty() &&
                       absl::c_all_of(flow.along, [&](const Positions& one) {
                         return one.settled && one.padding.Is(*with);
                       });
    if (tells) return true;
  }
  return false;
}

PaddingValue Combine(const AxisContext& context, absl::Span<const PaddingValue> paddings) {
  if (const auto known = ComputeScalar(context, paddings)) return PaddingValue::Constant(*known);
  const std::string& op = context.node().op;
  const auto any_is = [&](double value) {
    return absl::c_any_of(paddings, [&](const PaddingValue& one) { return one.Is(value); });
  };
  // Rows of other requests may hold infinities, which times 0 are no number.
  const bool may_be_infinite = context.is_batch() && IsFloating(context.dtype(0));
  const bool takes_out = op == AndOp::kName || (op == MulOp::kName && !may_be_infinite);
  if (takes_out && any_is(0)) return PaddingValue::Constant(0);
  if (op == OrOp::kName && any_is(1)) return PaddingValue::Constant(1);
  if (op == WhereOp::kName && paddings[0].kind == PaddingValue::Kind::kConstant) {
    return paddings[paddings[0].value != 0 ? 1 : 2];
  }
  if (op == WhereOp::kName && paddings[1].Depth().value_or(0) < 0 &&
      paddings[2].Depth().value_or(0) < 0) {
    if (paddings[1].is_constant() && paddings[2].Is(paddings[1].value)) return paddings[1];
    return LowOrUnknown(std::max(*paddings[1].Depth(), *paddings[2].Depth()));
  }
  // An infinite number in the padding, or one that is none, stays above whatever is added.
  for (size_t i = 0; i < paddings.size(); ++i) {
    const bool unknown = paddings[i].kind != PaddingValue::Kind::kConstant;
    if ((op == AddOp::kName || op == SubOp::kName) && unknown && context.input(i).unbounded) {
      return PaddingValue::Unknown();
    }
  }
  if (op == AddOp::kName) return LowSum(paddings[0], 1, paddings[1]);
  if (op == SubOp::kName) return LowSum(paddings[0], -1, paddings[1]);
  if (op == MulOp::kName) {
    const PaddingValue first = Scaled(paddings[0], paddings[1], false);
    return first.kind != PaddingValue::Kind::kUnknown ? first
                                                      : Scaled(paddings[1], paddings[0], false);
  }
  if (op == DivOp::kName) return Scaled(paddings[0], paddings[1], true);
  if (op == MinOp::kName) {
    // Whatever the others are, the result is at most the lowest that is known.
    PaddingValue lowest;
    for (const PaddingValue& one : paddings) {
      const bool lower = one.Depth().value_or(0) < lowest.Depth().value_or(0);
      if (lower) lowest = PaddingValue::Low(*one.Depth());
    }
    return lowest;
  }
  if (const auto bent = Bent(context, paddings)) return *bent;
  if (op == ExpOp::kName && paddings[0].kind == PaddingValue::Kind::kLow &&
      paddings[0].value <= kOutOfReach) {
    return PaddingValue::Constant(0);
  }
  if (op == CastOp::kName || op == CastLikeOp::kName || op == IdentityOp::kName ||
      op == DropoutOp::kName)
    return paddings[0];
  return PaddingValue::Unknown();
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
    context.Mix("computes with a number that depends on the length of", /*guarded=*/false);
  }
  Source source = Source::kConstant;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    source = std::max(source, context.input(i).source);
  }
  const bool is_mask = TellsPadding(context);
  if (is_mask) source = std::min(source, Source::kGuards);
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
      // Places compared with a number of places that a guard gives make a mask.
      const bool compared = source == Source::kGuards &&
                            context.input(i).source == Source::kConstant &&
                            !context.Uniform(i).has_value();
      joint.guarded = joint.guarded || positions->guarded || compared || is_mask;
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
      const bool taken_out = context.node().op == MulOp::kName && joint.padding.Is(0) && own >= 0;
      if (taken_out && context.MayBeInfiniteAt(i, own)) context.Doubt(kTakesOut);
    }
    flow.along.push_back(joint);
  }
  context.Set(0, std::move(flow), is_mask);
}

void KnownAxis(AxisContext&) {}

void UnknownAxis(AxisContext& context) {
  if (context.AnyPositions()) context.Doubt("relates positions in a way that is not known, of");
}

}  // namespace reprise::ops

#include "runtime/passes/read/scalar_rules.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/element_bits.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/passes/read/kernel_call.h"

namespace reprise {
namespace {

using Arguments = absl::Span<const Size>;
using ScalarRule = std::optional<Size> (*)(const ElementContext&, Arguments);

// Returns whether no rule may decide about `size` by its hint.
bool StaysOpen(const ElementContext& context, Size size) {
  return size.term() != nullptr && (size.term()->indexed || context.table.open());
}

// `a` and `b` of a division that rounds down: known not to be negative, and above 0.
bool RoundsDown(const ElementContext& context, Size a, Size b) {
  if (StaysOpen(context, a) || StaysOpen(context, b)) {
    return context.table.Bounds(a).low >= 0 && context.table.Bounds(b).low > 0;
  }
  return b > 0 && a >= 0;
}

std::optional<Size> Quotient(const ElementContext& context, Arguments x) {
  if (RoundsDown(context, x[0], x[1])) return FloorDivide(x[0], x[1]);
  if (StaysOpen(context, x[0]) || StaysOpen(context, x[1])) return std::nullopt;
  return x[1] == 0 ? Size(0) : x[0] / x[1];
}

std::optional<Size> Remainder(const ElementContext& context, Arguments x) {
  if (RoundsDown(context, x[0], x[1])) return x[0] - x[1] * FloorDivide(x[0], x[1]);
  const bool positive = StaysOpen(context, x[1]) ? context.table.Bounds(x[1]).low > 0 : x[1] > 0;
  if (!positive || ModOp::From(context.node).fmod) return std::nullopt;
  return x[0] - x[1] * FloorDivide(x[0], x[1]);
}

std::optional<Size> Bounded(const ElementContext& context, Arguments x) {
  Size bounded = x[0];
  if (context.has(1)) bounded = Largest(bounded, x[1]);
  if (context.has(2)) bounded = Least(bounded, x[2]);
  return bounded;
}

std::optional<Size> Magnitude(const ElementContext& context, Arguments x) {
  return Choose(context.table, NotNegative(context.table, x[0]), x[0], -x[0]);
}

std::optional<Size> Power(const ElementContext&, Arguments x) {
  if (x[1].is_constant() && x[1].hint() == 1) return x[0];
  if (x[1].is_constant() && x[1].hint() == 2) return x[0] * x[0];
  return std::nullopt;
}

Size Negated(const ElementContext& context, Size truth) {
  return Choose(context.table, truth, 0, 1);
}

Size Folded(Arguments x, Size (*f)(Size, Size)) {
  Size folded = x[0];
  for (size_t i = 1; i < x.size(); ++i) folded = f(folded, x[i]);
  return folded;
}

// Rules for integers of 32 and 64 bits; results of 32 bits are checked below.
const absl::flat_hash_map<absl::string_view, ScalarRule>& IntegerRules() {
  using C = const ElementContext&;
  using A = Arguments;
  static const auto* const rules = new absl::flat_hash_map<absl::string_view, ScalarRule>{
      {AddOp::kName, [](C, A x) -> std::optional<Size> { return x[0] + x[1]; }},
      {SubOp::kName, [](C, A x) -> std::optional<Size> { return x[0] - x[1]; }},
      {MulOp::kName, [](C, A x) -> std::optional<Size> { return x[0] * x[1]; }},
      {NegOp::kName, [](C, A x) -> std::optional<Size> { return -x[0]; }},
      {SumOp::kName,
       [](C, A x) -> std::optional<Size> {
         return Folded(x, [](Size a, Size b) { return a + b; });
       }},
      {MaxOp::kName, [](C, A x) -> std::optional<Size> { return Folded(x, Largest); }},
      {MinOp::kName, [](C, A x) -> std::optional<Size> { return Folded(x, Least); }},
      {DivOp::kName, Quotient},
      {ModOp::kName, Remainder},
      {ClipOp::kName, Bounded},
      {AbsOp::kName, Magnitude},
      {PowOp::kName, Power},
      {LessOp::kName,
       [](C c, A x) -> std::optional<Size> { return NotNegative(c.table, x[1] - x[0] - 1); }},
      {LessOrEqualOp::kName,
       [](C c, A x) -> std::optional<Size> { return NotNegative(c.table, x[1] - x[0]); }},
      {GreaterOp::kName,
       [](C c, A x) -> std::optional<Size> { return NotNegative(c.table, x[0] - x[1] - 1); }},
      {GreaterOrEqualOp::kName,
       [](C c, A x) -> std::optional<Size> { return NotNegative(c.table, x[0] - x[1]); }},
      {EqualOp::kName,
       [](C c, A x) -> std::optional<Size> { return IsZero(c.table, x[0] - x[1]); }},
  };
  return *rules;
}

// Rules for truth.
const absl::flat_hash_map<absl::string_view, ScalarRule>& TruthRules() {
  using C = const ElementContext&;
  using A = Arguments;
  static const auto* const rules = new absl::flat_hash_map<absl::string_view, ScalarRule>{
      {NotOp::kName, [](C c, A x) -> std::optional<Size> { return Negated(c, x[0]); }},
      {AndOp::kName,
       [](C c, A x) -> std::optional<Size> { return Choose(c.table, x[0], x[1], 0); }},
      {OrOp::kName, [](C c, A x) -> std::optional<Size> { return Choose(c.table, x[0], 1, x[1]); }},
      {XorOp::kName,
       [](C c, A x) -> std::optional<Size> {
         return Choose(c.table, x[0], Negated(c, x[1]), x[1]);
       }},
      {EqualOp::kName,
       [](C c, A x) -> std::optional<Size> {
         return Choose(c.table, x[0], x[1], Negated(c, x[1]));
       }},
  };
  return *rules;
}

bool IsWide(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32; }

// Returns whether `size` is one of 32 bits; asked of the hint where it is open.
bool Fits32(const ElementContext& context, Size size) {
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int32_t>::max();
  return context.table.IsNotNegative(size - kLow).value_or(false) &&
         context.table.IsNotNegative(kHigh - size).value_or(false);
}

// Returns the whole number that the element `x` of `dtype`, a float, is at every size.
std::optional<Size> WholeNumber(const ElementContext& context, DType dtype, Size x) {
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) return std::nullopt;
  // Each whole number up to this has a float of its own.
  const int64_t most = dtype == DType::kFloat32 ? int64_t{1} << 24 : int64_t{1} << 53;
  const auto bounded = [&](Size number) -> std::optional<Size> {
    const Interval bounds = context.table.Bounds(number);
    if (bounds.low < -most || bounds.high > most) return std::nullopt;
    return number;
  };
  if (x.is_constant()) {
    const double number = TensorOfElements(dtype, {}, {x.hint()}).ToDoubles()[0];
    if (!(std::abs(number) <= static_cast<double>(most)) || number != std::floor(number)) {
      return std::nullopt;
    }
    return Size(static_cast<int64_t>(number));
  }
  if (x.term()->kind != TermKind::kCall) return std::nullopt;
  const CalledKernel kernel = KernelOf(*x.term()->function);
  if (kernel.node == nullptr) return std::nullopt;
  const std::vector<Size>& operands = x.term()->operands;
  const std::string& op = kernel.node->op;
  if (op == CastOp::kName && IsWide(kernel.operands[0].dtype)) return bounded(operands[0]);
  const bool is_arithmetic = op == AddOp::kName || op == SubOp::kName || op == MulOp::kName;
  if (operands.size() != 2 || (!is_arithmetic && op != DivOp::kName)) return std::nullopt;
  const std::optional<Size> a = WholeNumber(context, dtype, operands[0]);
  const std::optional<Size> b = WholeNumber(context, dtype, operands[1]);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  if (op == AddOp::kName) return bounded(*a + *b);
  if (op == SubOp::kName) return bounded(*a - *b);
  if (op == MulOp::kName) return bounded(*a * *b);
  if (context.table.Bounds(*b).low <= 0) return std::nullopt;
  const Size quotient = FloorDivide(*a, *b);
  if (!(quotient * *b).Same(*a)) return std::nullopt;
  return bounded(quotient);
}

std::optional<Size> Converted(const ElementContext& context, Size x) {
  const DType from = context.inputs[0].dtype, to = context.outputs[0].dtype;
  if (from == to) return x;
  const bool integer = IsWide(from) || from == DType::kBool;
  if (to == DType::kBool && IsWide(from)) return Negated(context, IsZero(context.table, x));
  if (integer && (to == DType::kInt64 || (to == DType::kInt32 && Fits32(context, x)))) return x;
  if (!IsWide(to) && to != DType::kBool) return std::nullopt;
  const std::optional<Size> whole = WholeNumber(context, from, x);
  if (!whole.has_value()) return std::nullopt;
  return to == DType::kBool ? Negated(context, IsZero(context.table, *whole)) : *whole;
}

// Rules of floats: only whole numbers made of sizes have terms.
std::optional<Size> FloatResult(const ElementContext& context, Arguments x) {
  const std::string& op = context.node.op;
  const DType dtype = context.inputs[0].dtype;
  std::vector<Size> whole;
  for (const Size argument : x) {
    const std::optional<Size> number = WholeNumber(context, dtype, argument);
    if (!number.has_value()) return std::nullopt;
    whole.push_back(*number);
  }
  const OpFacts& facts = FactsOf(op);
  if (facts.sizes == Sizes::kRounding) return x[0];
  if (facts.sizes == Sizes::kMagnitude) {
    if (context.table.Bounds(whole[0]).low >= 0) return x[0];
    return std::nullopt;
  }
  if (facts.sizes == Sizes::kComparison) {
    const auto rule = IntegerRules().find(op);
    return rule == IntegerRules().end() ? std::nullopt : rule->second(context, whole);
  }
  if (x.size() != 2 || (op != MaxOp::kName && op != MinOp::kName)) return std::nullopt;
  const Interval apart = context.table.Bounds(whole[0] - whole[1]);
  if (apart.low < 0 && apart.high > 0) return std::nullopt;
  return x[(apart.low >= 0) == (op == MaxOp::kName) ? 0 : 1];
}

}  // namespace

std::optional<Size> ScalarResult(const ElementContext& context, absl::Span<const Size> arguments) {
  const std::string& op = context.node.op;
  if (op == WhereOp::kName) return Choose(context.table, arguments[0], arguments[1], arguments[2]);
  if (op == IdentityOp::kName) return arguments[0];
  if (op == CastOp::kName || op == CastLikeOp::kName) return Converted(context, arguments[0]);
  const DType dtype = context.inputs[0].dtype;
  if (IsFloating(dtype)) return FloatResult(context, arguments);
  if (dtype != DType::kBool && !IsWide(dtype)) return std::nullopt;
  const auto& rules = dtype == DType::kBool ? TruthRules() : IntegerRules();
  const auto rule = rules.find(op);
  if (rule == rules.end()) return std::nullopt;
  if (op == PowOp::kName && context.inputs[1].dtype != dtype) return std::nullopt;
  const std::optional<Size> result = rule->second(context, arguments);
  if (result.has_value() && context.outputs[0].dtype == DType::kInt32 &&
      !Fits32(context, *result)) {
    return std::nullopt;
  }
  return result;
}

}  // namespace reprise

#include "runtime/passes/match/mask_range.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "runtime/graph/elements.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise::pack {
namespace {

std::optional<Range> Joined(const std::optional<Range>& a, const std::optional<Range>& b) {
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  return Range{std::min(a->least, b->least), std::max(a->most, b->most)};
}

std::optional<Range> RangeOfResult(const Graph& graph, ValueId id, int depth) {
  const Value& value = graph.value(id);
  if (const Tensor* constant = graph.ConstantOf(id)) {
    std::optional<Range> range;
    const bool numbers = AllElements(*constant, [&](double number) {
      if (!range.has_value()) range = Range{number, number};
      range = {std::min(range->least, number), std::max(range->most, number)};
      return !std::isnan(number);
    });
    return numbers ? range : std::nullopt;
  }
  if (value.dtype == DType::kBool) return Range{0, 1};
  if (value.producer == kNone || depth == 0) return std::nullopt;
  const Node& node = graph.node(value.producer);
  const auto of = [&](size_t i) { return RangeOfResult(graph, node.inputs[i], depth - 1); };
  if (FactsOf(node.op).HoldsAllOfFirst()) return of(0);
  if (node.op == CastOp::kName && graph.value(node.inputs[0]).dtype == DType::kBool)
    return Range{0, 1};
  if (node.op == WhereOp::kName) {
    // Where it is 0, the condition itself is chosen instead of operand 2: that is 0, too.
    ValueId condition = node.inputs[0];
    while (const Node* cast = graph.ProducerIf(condition, CastOp::kName)) {
      if (graph.value(condition).dtype != DType::kBool) break;
      condition = cast->inputs[0];
    }
    if (condition == node.inputs[2]) return Joined(of(1), Range{0, 0});
    return Joined(of(1), of(2));
  }
  if (node.op == SubOp::kName) {
    const std::optional<Range> a = of(0), b = of(1);
    if (!a.has_value() || !b.has_value()) return std::nullopt;
    const double least = a->least - b->most, most = a->most - b->least;
    if (!std::isfinite(least) || !std::isfinite(most)) return std::nullopt;
    return Range{least, most};
  }
  if (node.op == MulOp::kName) {
    const std::optional<Range> a = of(0), b = of(1);
    if (!a.has_value() || !b.has_value()) return std::nullopt;
    const double corners[] = {a->least * b->least, a->least * b->most, a->most * b->least,
                              a->most * b->most};
    const auto [least, most] = std::minmax_element(std::begin(corners), std::end(corners));
    if (!std::all_of(std::begin(corners), std::end(corners),
                     [](double corner) { return std::isfinite(corner); })) {
      return std::nullopt;
    }
    return Range{*least, *most};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Range> RangeOf(const Graph& graph, ValueId value) {
  constexpr int kDeepest = 16;
  return RangeOfResult(graph, value, kDeepest);
}

}  // namespace reprise::pack

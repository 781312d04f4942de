#include "runtime/certify/uneven.h"

#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/graph/elements.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/shape_op.h"

namespace reprise {
namespace {

enum class Kind { kData, kEven, kUneven };

bool IsEven(const Tensor& tensor) {
  std::optional<double> first;
  return AllElements(tensor, [&](double value) {
    if (!first.has_value()) first = value;
    return value == *first;
  });
}

// The kind of what a node makes of sizes and constants.
Kind Made(const Node& node, const OpRow& row, const std::vector<Kind>& kinds) {
  const OpFacts& facts = FactsOf(row);
  const auto is_even = [&](ValueId id) { return id == kNone || kinds[id] == Kind::kEven; };
  bool even = node.op == ConstantOfShapeOp::kName;
  if (facts.HoldsFirst() || facts.Is(kReduces)) even = is_even(node.input(0));
  if (row.Has(kElementwise)) even = absl::c_all_of(node.inputs, is_even);
  return even ? Kind::kEven : Kind::kUneven;
}

}  // namespace

std::set<std::string> UnevenConstants(const Graph& symbolic) {
  std::vector<Kind> kinds(symbolic.num_values(), Kind::kData);
  for (ValueId id = 0; id < static_cast<ValueId>(symbolic.num_values()); ++id) {
    const Value& value = symbolic.value(id);
    if (value.kind == Value::Kind::kParameter) kinds[id] = Kind::kUneven;
    if (value.kind != Value::Kind::kConstant) continue;
    kinds[id] = IsEven(value.constant) ? Kind::kEven : Kind::kUneven;
  }
  std::set<std::string> names;
  for (const NodeId id : symbolic.NodeIds()) {
    const Node& node = symbolic.node(id);
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || row->Has(kNoFold)) continue;
    const bool data = !row->Has(kShapeOnly) && absl::c_any_of(node.inputs, [&](ValueId input) {
      return input != kNone && kinds[input] == Kind::kData;
    });
    if (data) continue;
    const Kind kind = Made(node, *row, kinds);
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      kinds[output] = kind;
      if (kind == Kind::kUneven) names.insert(symbolic.value(output).name);
    }
  }
  return names;
}

}  // namespace reprise

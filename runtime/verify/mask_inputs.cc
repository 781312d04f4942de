#include "runtime/verify/mask_inputs.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/recurrent/recurrent_op.h"
#include "runtime/ops/reduce/arg_op.h"

namespace reprise {
namespace {

bool Passes(const Graph& graph, const Node& node) {
  if (FactsOf(node.op).HoldsAllOfFirst()) return true;
  return node.op == CastOp::kName && !IsFloating(graph.value(node.outputs[0]).dtype);
}

// Calls `look` with each node that takes the input, as it is, and the value that it takes. Ends
// with false where `look` returns false.
bool LookAtUsers(const Graph& graph, ValueId input,
                 absl::FunctionRef<bool(const Node&, ValueId)> look) {
  std::vector<ValueId> itself = {input};
  std::set<ValueId> seen = {input};
  while (!itself.empty()) {
    const ValueId one = itself.back();
    itself.pop_back();
    for (const NodeId user : graph.value(one).users) {
      const Node& node = graph.node(user);
      if (!look(node, one)) return false;
      const bool passes = Passes(graph, node) && node.input(0) == one;
      if (passes && seen.insert(node.outputs[0]).second) itself.push_back(node.outputs[0]);
    }
  }
  return true;
}

// Operand `i` of `node` is the lengths of rows.
bool TakesLengths(const Node& node, size_t i) {
  if (node.op == LstmOp::kName || node.op == GruOp::kName || node.op == RnnOp::kName) return i == 4;
  return node.op == "ReverseSequence" && i == 1;
}

}  // namespace

bool IsMaskInput(const Graph& graph, ValueId input) {
  const Value& value = graph.value(input);
  if (value.dtype == DType::kBool) return true;
  if (!IsInteger(value.dtype)) return false;
  const bool named = absl::StrContains(absl::AsciiStrToLower(value.name), "mask");
  bool counted = false;
  const bool never_looked_up = LookAtUsers(graph, input, [&](const Node& node, ValueId one) {
    counted = counted || node.op == CumSumOp::kName;
    return !FactsOf(node.op).Is(kLooksUp) || node.input(0) == one;
  });
  return never_looked_up && (named || counted);
}

std::optional<int64_t> HotDepth(const Graph& graph, ValueId input) {
  std::optional<int64_t> largest;
  LookAtUsers(graph, input, [&](const Node& node, ValueId one) {
    if (node.op != OneHotOp::kName || node.input(OneHotOp::kPlaces) != one) return true;
    const Tensor* depth = graph.ConstantOf(node.input(OneHotOp::kDepth));
    const auto number =
        depth == nullptr ? absl::StatusOr<std::vector<int64_t>>() : depth->ToInt64s();
    if (number.ok() && number->size() == 1) largest = std::max(largest.value_or(0), (*number)[0]);
    return true;
  });
  return largest;
}

bool IsLengthInput(const Graph& graph, ValueId input) {
  return !LookAtUsers(graph, input, [](const Node& node, ValueId one) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == one && TakesLengths(node, i)) return false;
    }
    return true;
  });
}

}  // namespace reprise

#include "runtime/verify/mask_inputs.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/recurrent/recurrent_op.h"
#include "runtime/ops/reduce/arg_op.h"

namespace reprise {
namespace {

bool Passes(const Graph& graph, const Node& node) {
  if (FactsOf(node.op).HoldsAllOfFirst()) return true;
  return node.op == CastOp::kName && !IsFloating(graph.value(node.outputs[0]).dtype);
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
  std::vector<ValueId> itself = {input};
  std::set<ValueId> seen = {input};
  while (!itself.empty()) {
    const ValueId one = itself.back();
    itself.pop_back();
    for (const NodeId user : graph.value(one).users) {
      const Node& node = graph.node(user);
      if (FactsOf(node.op).Is(kLooksUp) && node.input(0) != one) return false;
      counted = counted || node.op == CumSumOp::kName;
      const bool passes = Passes(graph, node) && node.input(0) == one;
      if (passes && seen.insert(node.outputs[0]).second) itself.push_back(node.outputs[0]);
    }
  }
  return named || counted;
}

bool IsLengthInput(const Graph& graph, ValueId input) {
  std::vector<ValueId> itself = {input};
  std::set<ValueId> seen = {input};
  while (!itself.empty()) {
    const ValueId one = itself.back();
    itself.pop_back();
    for (const NodeId user : graph.value(one).users) {
      const Node& node = graph.node(user);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == one && TakesLengths(node, i)) return true;
      }
      const bool passes = Passes(graph, node) && node.input(0) == one;
      if (passes && seen.insert(node.outputs[0]).second) itself.push_back(node.outputs[0]);
    }
  }
  return false;
}

}  // namespace reprise

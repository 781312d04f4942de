
#include "runtime/base/hash64.h"
#include "runtime/base/hash_map.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/simplify_passes.h"

namespace reprise {
namespace {

void AppendId(std::string& key, int64_t id) {
  key.append(reinterpret_cast<const char*>(&id), sizeof(id));
}

// Returns keys that are equal exactly when op, attributes, operands and left-out results agree.
std::string NodeKey(const Node& node, bool commutative) {
  std::string key = node.op;
  key += '\0';
  ValueId first = node.input(0);
  ValueId second = node.input(1);
  if (commutative && second < first) std::swap(first, second);
  AppendId(key, static_cast<int64_t>(node.inputs.size()));
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    AppendId(key, i == 0 ? first : i == 1 ? second : node.inputs[i]);
  }
  for (ValueId output : node.outputs) key += output == kNone ? '_' : '1';
  if (!node.attributes.empty()) key += PrintAttributes(node.attributes);
  return key;
}

bool MergeWeights(Graph& graph) {
  bool changed = false;
  HashMap<uint64_t, std::vector<ValueId>> constants;  // keyed by hash of the bytes
  HashMap<absl::string_view, ValueId> parameters;     // keyed by text
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const Value& value = graph.value(id);
    if (value.overridable || value.users.empty()) continue;
    ValueId same = kNone;
    if (value.kind == Value::Kind::kParameter) {
      same = parameters.try_emplace(value.parameter->text(), id).first->second;
    } else if (value.kind == Value::Kind::kConstant) {
      const Tensor& tensor = value.constant;
      const uint64_t hash =
          Hash64(absl::string_view(static_cast<const char*>(tensor.data()), tensor.bytes()),
                 static_cast<uint64_t>(tensor.dtype()));
      std::vector<ValueId>& bucket = constants[hash];
      for (ValueId other : bucket) {
        if (graph.value(other).constant == tensor) same = other;
      }
      if (same == kNone) bucket.push_back(id);
    }
    if (same == kNone || same == id) continue;
    graph.ReplaceAllUses(id, same);
    changed = true;
  }
  return changed;
}

absl::StatusOr<bool> MergeCommonIn(Graph& graph) {
  bool changed = MergeWeights(graph);
  HashMap<std::string, NodeId> seen;
  for (NodeId id : graph.NodeIds()) {  // Operands come before users: merged operands are seen.
    const OpRow* row = FindOp(graph.node(id).op);
    if (row == nullptr || row->Has(kNoFold)) continue;
    const auto [it, is_new] = seen.try_emplace(NodeKey(graph.node(id), row->Has(kCommutative)), id);
    if (is_new) continue;
    const std::vector<ValueId> outputs = graph.node(id).outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == kNone) continue;
      graph.ReplaceAllUses(outputs[i], graph.node(it->second).outputs[i]);
    }
    graph.RemoveNode(id);
    changed = true;
  }
  return changed;
}

}  // namespace

std::unique_ptr<Pass> MergeCommon() { return PassOf("merge_common", MergeCommonIn); }

}  // namespace reprise

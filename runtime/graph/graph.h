// Graph: our intermediate representation of a model, before and after it is specialised.
//
// Nodes apply ops (by name, see runtime/ops/kit/op.h) to values. Values are inputs, parameters,
// constants or results of nodes; each has one definition. In a symbolic graph only inputs,
// parameters and constants know their shapes, and inputs may have symbolic dims; in a specialised
// graph every value has a constant shape and a dtype (`is_specialized`).
//
// Parameter: a floating or int8/uint8 initialiser of 256 elements or more. Passes know its dtype
//   and shape, never its bytes; those stay with the model version. See ParameterExpr.
// Constant: every other known value; its bytes are here, and are part of a recipe's key.
//
// Ids of nodes and values stay valid until Compact(). Removed nodes and values leave holes that
// the iteration helpers skip.
//
// Ownership: values and nodes belong to the graph; copying a graph shares constants' bytes.
// Threads: const methods from any thread; no concurrent change.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/attribute.h"
#include "runtime/graph/copy_on_write.h"
#include "runtime/graph/node.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/graph/shape.h"
#include "runtime/graph/tensor.h"

namespace reprise {

// A floating or int8/uint8 initialiser of at least this many elements is a parameter.
inline constexpr int64_t kMinParameterElements = 256;
bool IsParameterLike(DType dtype, int64_t num_elements);

struct Value {
  enum class Kind { kRemoved, kInput, kParameter, kConstant, kResult };

  Kind kind = Kind::kRemoved;
  std::string name;  // unique among the graph's values, never empty
  DType dtype = DType::kUndefined;
  std::optional<Shape> shape;  // known; always set for parameters and constants
  std::vector<Dim> dims;       // inputs: the declared dims
  ParameterExprPtr parameter;  // parameters
  Tensor constant;             // constants
  bool overridable = false;    // an initialiser that is also listed as an input of the model
  NodeId producer = kNone;     // results
  std::vector<NodeId> users;   // one entry a use; uses as graph output are not counted
  // Set by the compiler: the elements are this many equal blocks, block i of row i of the batch
  // axis alone. 0: not known.
  int64_t batch_rows = 0;
};

class Graph {
 public:
  // --- Building. An empty name is replaced by a generated one; a taken one gets a suffix. ---
  ValueId AddInput(absl::string_view name, DType dtype, std::vector<Dim> dims);
  ValueId AddParameter(absl::string_view name, ParameterExprPtr parameter);
  ValueId AddConstant(absl::string_view name, Tensor value);
  // Adds a node with `num_outputs` new result values; returns its id. Order among nodes is kept
  // topological by Compact() alone, so that a pass may add nodes anywhere.
  NodeId AddNode(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes = {},
                 size_t num_outputs = 1, absl::string_view name = "");
  // Does the same with the outputs named; an empty name leaves that optional output out.
  NodeId AddNodeWithOutputs(absl::string_view op, std::vector<ValueId> inputs,
                            Attributes attributes, const std::vector<std::string>& output_names,
                            absl::string_view name);
  // Records that `node` is a step of the model's node `name`, whose op is `op`.
  void SetSource(NodeId node, absl::string_view op, absl::string_view name);
  void AddOutput(ValueId value) { outputs_.push_back(value); }
  void ClearOutputs() { outputs_.clear(); }
  // Makes output number `index` be `value`; the other outputs stay.
  void SetOutput(size_t index, ValueId value) { outputs_[index] = value; }

  // --- Changing. ---
  void SetInput(NodeId node, size_t index, ValueId value);
  // Makes every use of `from`, outputs of the graph included, a use of `to`. When `from` is an
  // output of the graph, nothing but the position is kept: output names live in the model.
  void ReplaceAllUses(ValueId from, ValueId to);
  // Removes the node and its result values, which must have no uses left.
  void RemoveNode(NodeId node);
  // Turns a result, input or parameter into a constant of the same dtype; its producer loses it
  // (and is removed when no other result of it is used).
  void ReplaceWithConstant(ValueId value, Tensor constant);
  void ReplaceWithParameter(ValueId value, ParameterExprPtr parameter);
  // Turns a constant or parameter into the last input, of its dtype and the dims that it has.
  void ReplaceWithInput(ValueId value);
  // Drops nodes without uses and values without definition or use, sorts nodes topologically
  // (stable) and renumbers. Inputs always stay. Returns false, changing nothing, on a cycle.
  bool Compact();

  // --- Reading. ---
  const Value& value(ValueId id) const { return values_[id]; }
  Value& value(ValueId id) { return values_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  Node& node(NodeId id) { return nodes_[id]; }
  size_t num_values() const { return values_.size(); }  // holes included
  size_t num_nodes() const { return nodes_.size(); }    // holes included
  size_t live_nodes() const;
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  bool IsOutput(ValueId id) const;
  // Returns the ids of nodes that are not removed, in id order (topological after Compact()).
  std::vector<NodeId> NodeIds() const;
  ValueId FindValue(absl::string_view name) const;  // kNone when there is none

  // Returns the producer of `value` if it is a result of op `op`, else nullptr.
  const Node* ProducerIf(ValueId value, absl::string_view op) const;
  // Returns the constant's bytes, or nullptr when `value` is kNone or not a constant.
  const Tensor* ConstantOf(ValueId value) const;
  // Returns true when the only use of `value` is one node input (and not as a graph output).
  bool HasOneUse(ValueId value) const;

  // Returns whether every live value has a dtype and a constant shape.
  bool is_specialized() const;

 private:
  ValueId NewValue(Value::Kind kind, absl::string_view name);
  std::string UniqueName(absl::string_view wanted);
  void AddUse(ValueId value, NodeId node);
  void RemoveUse(ValueId value, NodeId node);

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  CopyOnWrite<absl::flat_hash_map<std::string, ValueId>> by_name_;
  int64_t next_name_ = 0;
};

}  // namespace reprise

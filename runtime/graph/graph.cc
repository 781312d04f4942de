#include "runtime/graph/graph.h"

#include <algorithm>
#include <queue>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// Returns the nodes that an output depends on.
std::vector<bool> NeededNodes(const std::vector<Value>& values, const std::vector<Node>& nodes,
                              std::vector<ValueId> stack) {
  std::vector<bool> needed(nodes.size(), false);
  while (!stack.empty()) {
    const ValueId id = stack.back();
    stack.pop_back();
    if (id == kNone) continue;
    const NodeId producer = values[id].producer;
    if (producer == kNone || needed[producer]) continue;
    needed[producer] = true;
    for (ValueId input : nodes[producer].inputs) stack.push_back(input);
  }
  return needed;
}

// Returns them in topological order, the lowest id first where there is a choice; fewer on a cycle.
std::vector<NodeId> Sorted(const std::vector<Value>& values, const std::vector<Node>& nodes,
                           const std::vector<bool>& needed) {
  std::vector<NodeId> order;
  order.reserve(nodes.size());
  bool sorted = true;
  for (NodeId id = 0; id < static_cast<NodeId>(nodes.size()); ++id) {
    if (!needed[id]) continue;
    order.push_back(id);
    for (ValueId input : nodes[id].inputs) {
      sorted = sorted && (input == kNone || values[input].producer < id);
    }
  }
  if (sorted) return order;  // The usual case: only nodes added at the end are out of place.
  order.clear();
  // Kahn's algorithm; among ready nodes the lowest id goes first, which keeps the order stable.
  std::vector<int> missing(nodes.size(), 0);
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId id = 0; id < static_cast<NodeId>(nodes.size()); ++id) {
    if (!needed[id]) continue;
    for (ValueId input : nodes[id].inputs) {
      if (input != kNone && values[input].producer != kNone) ++missing[id];
    }
    if (missing[id] == 0) ready.push(id);
  }
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (ValueId output : nodes[id].outputs) {
      if (output == kNone) continue;
      for (NodeId user : values[output].users) {
        if (needed[user] && --missing[user] == 0) ready.push(user);
      }
    }
  }
  return order;
}

}  // namespace

bool IsParameterLike(DType dtype, int64_t num_elements) {
  return num_elements >= kMinParameterElements &&
         (IsFloating(dtype) || dtype == DType::kInt8 || dtype == DType::kUInt8);
}

const std::string& SourceOp(const Node& node) {
  return node.source_op.empty() ? node.op : node.source_op;
}

std::string NodeLabel(const Node& node) {
  const std::string label = SourceLabel(node);
  return node.source_op.empty() ? label : absl::StrCat(label, ", step ", node.op);
}

std::string SourceLabel(const Node& node) {
  return node.name.empty() ? SourceOp(node) : absl::StrCat(SourceOp(node), " '", node.name, "'");
}

std::string Graph::UniqueName(absl::string_view wanted) {
  std::string name(wanted);
  if (name.empty()) name = absl::StrCat("v", next_name_++);
  for (int suffix = 1; by_name_->contains(name); ++suffix) {
    name = wanted.empty() ? absl::StrCat("v", next_name_++) : absl::StrCat(wanted, ".", suffix);
  }
  return name;
}

ValueId Graph::NewValue(Value::Kind kind, absl::string_view name) {
  const ValueId id = static_cast<ValueId>(values_.size());
  Value& value = values_.emplace_back();
  value.kind = kind;
  value.name = UniqueName(name);
  by_name_.Edit()[value.name] = id;
  return id;
}

ValueId Graph::AddInput(absl::string_view name, DType dtype, std::vector<Dim> dims) {
  const ValueId id = NewValue(Value::Kind::kInput, name);
  Value& value = values_[id];
  value.dtype = dtype;
  if (absl::c_all_of(dims, [](const Dim& dim) { return dim.is_constant(); })) {
    value.shape.emplace();
    for (const Dim& dim : dims) value.shape->push_back(dim.size);
  }
  value.dims = std::move(dims);
  inputs_.push_back(id);
  return id;
}

ValueId Graph::AddParameter(absl::string_view name, ParameterExprPtr parameter) {
  const ValueId id = NewValue(Value::Kind::kParameter, name);
  values_[id].dtype = parameter->dtype();
  values_[id].shape = parameter->shape();
  values_[id].parameter = std::move(parameter);
  return id;
}

ValueId Graph::AddConstant(absl::string_view name, Tensor constant) {
  const ValueId id = NewValue(Value::Kind::kConstant, name);
  values_[id].dtype = constant.dtype();
  values_[id].shape = constant.shape();
  values_[id].constant = std::move(constant);
  return id;
}

NodeId Graph::AddNode(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes,
                      size_t num_outputs, absl::string_view name) {
  const NodeId id = static_cast<NodeId>(nodes_.size());
  Node& node = nodes_.emplace_back();
  node.op = std::string(op);
  node.name = std::string(name);
  node.attributes = std::move(attributes);
  node.inputs = std::move(inputs);
  for (ValueId input : node.inputs) AddUse(input, id);
  for (size_t i = 0; i < num_outputs; ++i) {
    const ValueId result = NewValue(Value::Kind::kResult, "");
    values_[result].producer = id;
    node.outputs.push_back(result);
  }
  return id;
}

NodeId Graph::AddNodeWithOutputs(absl::string_view op, std::vector<ValueId> inputs,
                                 Attributes attributes,
                                 const std::vector<std::string>& output_names,
                                 absl::string_view name) {
  const NodeId id = AddNode(op, std::move(inputs), std::move(attributes), 0, name);
  for (const std::string& output_name : output_names) {
    ValueId result = kNone;
    if (!output_name.empty()) {
      result = NewValue(Value::Kind::kResult, output_name);
      values_[result].producer = id;
    }
    nodes_[id].outputs.push_back(result);
  }
  return id;
}

void Graph::SetSource(NodeId node, absl::string_view op, absl::string_view name) {
  nodes_[node].source_op = nodes_[node].op == op ? "" : std::string(op);
  nodes_[node].name = std::string(name);
}

void Graph::AddUse(ValueId value, NodeId node) {
  if (value != kNone) values_[value].users.push_back(node);
}

void Graph::RemoveUse(ValueId value, NodeId node) {
  if (value == kNone) return;
  std::vector<NodeId>& users = values_[value].users;
  auto it = std::find(users.begin(), users.end(), node);
  REPRISE_CHECK(it != users.end());
  users.erase(it);
}

void Graph::SetInput(NodeId node, size_t index, ValueId value) {
  std::vector<ValueId>& inputs = nodes_[node].inputs;
  if (index >= inputs.size()) inputs.resize(index + 1, kNone);
  RemoveUse(inputs[index], node);
  inputs[index] = value;
  AddUse(value, node);
}

void Graph::ReplaceAllUses(ValueId from, ValueId to) {
  if (from == to) return;
  const std::vector<NodeId> users = values_[from].users;
  for (NodeId user : users) {
    for (size_t i = 0; i < nodes_[user].inputs.size(); ++i) {
      if (nodes_[user].inputs[i] == from) SetInput(user, i, to);
    }
  }
  absl::c_replace(outputs_, from, to);
}

void Graph::RemoveNode(NodeId id) {
  Node& node = nodes_[id];
  for (ValueId input : node.inputs) RemoveUse(input, id);
  for (ValueId output : node.outputs) {
    if (output == kNone) continue;
    Value& value = values_[output];
    if (value.producer != id) continue;  // It became a constant or parameter.
    REPRISE_CHECK(value.users.empty() && !IsOutput(output));
    by_name_.Edit().erase(value.name);
    value = Value();
  }
  node = Node();
  node.removed = true;
}

void Graph::ReplaceWithConstant(ValueId id, Tensor constant) {
  Value& value = values_[id];
  const NodeId producer = value.producer;
  value.kind = Value::Kind::kConstant;
  value.producer = kNone;
  value.dtype = constant.dtype();
  value.shape = constant.shape();
  value.constant = std::move(constant);
  value.parameter.reset();
  value.dims.clear();
  std::erase(inputs_, id);
  if (producer == kNone) return;
  absl::c_replace(nodes_[producer].outputs, id, kNone);
  for (ValueId output : nodes_[producer].outputs) {
    if (output != kNone && (!values_[output].users.empty() || IsOutput(output))) return;
  }
  RemoveNode(producer);
}

void Graph::ReplaceWithParameter(ValueId id, ParameterExprPtr parameter) {
  ReplaceWithConstant(id, Tensor(parameter->dtype(), parameter->shape(), nullptr));
  Value& value = values_[id];
  value.kind = Value::Kind::kParameter;
  value.constant = Tensor();
  value.parameter = std::move(parameter);
}

void Graph::ReplaceWithInput(ValueId id) {
  Value& value = values_[id];
  value.kind = Value::Kind::kInput;
  value.shape.reset();
  value.constant = Tensor();
  value.parameter.reset();
  value.overridable = false;
  inputs_.push_back(id);
}

bool Graph::Compact() {
  const std::vector<bool> needed = NeededNodes(values_, nodes_, outputs_);
  const std::vector<NodeId> order = Sorted(values_, nodes_, needed);
  if (order.size() != static_cast<size_t>(absl::c_count(needed, true))) return false;

  for (NodeId id = static_cast<NodeId>(nodes_.size()) - 1; id >= 0; --id) {
    if (needed[id] || nodes_[id].removed) continue;
    // Uses between two dead nodes are removed first, so that every result is unused when its node
    // is removed.
    for (ValueId input : nodes_[id].inputs) RemoveUse(input, id);
    nodes_[id].inputs.clear();
  }
  for (NodeId id = 0; id < static_cast<NodeId>(nodes_.size()); ++id) {
    if (!needed[id] && !nodes_[id].removed) RemoveNode(id);
  }

  std::vector<NodeId> new_node(nodes_.size(), kNone);
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (NodeId id : order) {
    new_node[id] = static_cast<NodeId>(nodes.size());
    nodes.push_back(std::move(nodes_[id]));
  }
  std::vector<ValueId> new_value(values_.size(), kNone);
  ValueId kept = 0;
  for (ValueId id = 0; id < static_cast<ValueId>(values_.size()); ++id) {
    Value& value = values_[id];
    const bool keep = value.kind == Value::Kind::kInput || !value.users.empty() || IsOutput(id) ||
                      (value.kind == Value::Kind::kResult && value.producer != kNone);
    if (value.kind == Value::Kind::kRemoved || !keep) continue;
    new_value[id] = kept++;
    if (value.producer != kNone) value.producer = new_node[value.producer];
    for (NodeId& user : value.users) user = new_node[user];
    if (new_value[id] != id) values_[new_value[id]] = std::move(value);
  }
  values_.resize(kept);
  // Names stay, so that they need not be hashed again.
  absl::erase_if(by_name_.Edit(), [&](auto& named) {
    named.second = new_value[named.second];
    return named.second == kNone;
  });
  for (Node& node : nodes) {
    for (ValueId& input : node.inputs) input = input == kNone ? kNone : new_value[input];
    for (ValueId& output : node.outputs) output = output == kNone ? kNone : new_value[output];
  }
  for (ValueId& input : inputs_) input = new_value[input];
  for (ValueId& output : outputs_) output = new_value[output];
  nodes_ = std::move(nodes);
  return true;
}

size_t Graph::live_nodes() const {
  return absl::c_count_if(nodes_, [](const Node& node) { return !node.removed; });
}

bool Graph::IsOutput(ValueId id) const { return absl::c_linear_search(outputs_, id); }

std::vector<NodeId> Graph::NodeIds() const {
  std::vector<NodeId> ids;
  ids.reserve(nodes_.size());
  for (NodeId id = 0; id < static_cast<NodeId>(nodes_.size()); ++id) {
    if (!nodes_[id].removed) ids.push_back(id);
  }
  return ids;
}

ValueId Graph::FindValue(absl::string_view name) const {
  const auto it = by_name_->find(name);
  return it == by_name_->end() ? kNone : it->second;
}

const Node* Graph::ProducerIf(ValueId value, absl::string_view op) const {
  if (value == kNone || values_[value].producer == kNone) return nullptr;
  const Node& node = nodes_[values_[value].producer];
  return node.op == op ? &node : nullptr;
}

const Tensor* Graph::ConstantOf(ValueId value) const {
  if (value == kNone || values_[value].kind != Value::Kind::kConstant) return nullptr;
  return &values_[value].constant;
}

bool Graph::HasOneUse(ValueId value) const {
  return values_[value].users.size() == 1 && !IsOutput(value);
}

bool Graph::is_specialized() const {
  return absl::c_all_of(values_, [](const Value& value) {
    return value.kind == Value::Kind::kRemoved ||
           (value.dtype != DType::kUndefined && value.shape.has_value());
  });
}

}  // namespace reprise

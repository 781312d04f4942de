#include "runtime/engine/model_variants.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/op.h"
#include "runtime/passes/pass.h"

namespace reprise {
namespace {

// Of n initialisers a client can choose 2^n sets; the list starts anew when it holds this many.
constexpr size_t kMaxVariants = 16;

bool Contains(const std::vector<int>& positions, size_t position) {
  return std::find(positions.begin(), positions.end(), static_cast<int>(position)) !=
         positions.end();
}

// Positions of the inputs whose values those in `stack` are made of; where only a shape is read,
// values end.
std::vector<int> InputsBehind(const Graph& graph, const std::vector<ModelIo>& inputs,
                              std::vector<ValueId> stack) {
  std::vector<bool> seen(graph.num_values(), false);
  std::vector<int> found;
  while (!stack.empty()) {
    const ValueId id = stack.back();
    stack.pop_back();
    if (id == kNone || seen[id]) continue;
    seen[id] = true;
    const Value& value = graph.value(id);
    if (value.kind == Value::Kind::kInput) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].name == value.name) found.push_back(i);
      }
    } else if (value.kind == Value::Kind::kResult) {
      const Node& producer = graph.node(value.producer);
      const OpRow* row = FindOp(producer.op);
      if (row != nullptr && row->Has(kShapeOnly)) continue;
      for (ValueId input : producer.inputs) stack.push_back(input);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<int> FindShapeInputs(const Graph& graph, const std::vector<ModelIo>& inputs) {
  std::vector<ValueId> deciding;
  for (NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const OpRow* row = FindOp(node.op);
    for (size_t i = 0; row != nullptr && i < node.inputs.size(); ++i) {
      if (row->IsValueInput(i)) deciding.push_back(node.inputs[i]);
    }
  }
  return InputsBehind(graph, inputs, std::move(deciding));
}

absl::Status CheckConditions(const Graph& graph, const std::vector<ModelIo>& inputs) {
  for (NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op != "If") continue;
    for (const int position : InputsBehind(graph, inputs, {node.input(0)})) {
      const ModelIo& input = inputs[position];
      const bool is_option =
          (input.dtype == DType::kBool || input.dtype == DType::kInt64 ||
           input.dtype == DType::kInt32) &&
          absl::c_all_of(input.dims, [](const Dim& dim) { return dim.is_constant(); });
      if (is_option) continue;
      return absl::UnimplementedError(absl::StrCat(
          NodeLabel(node), ": its condition depends on the data of input '", input.name, "'"));
    }
  }
  return absl::OkStatus();
}

ModelVariants::ModelVariants(Graph imported, std::vector<ModelIo> inputs)
    : imported_(std::move(imported)), inputs_(std::move(inputs)) {
  std::vector<int> all;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].optional) all.push_back(i);
  }
  shape_inputs_ = FindShapeInputs(WithInputs(all), inputs_);
}

Graph ModelVariants::WithInputs(const std::vector<int>& overrides) const {
  Graph graph = imported_;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const ValueId id = graph.FindValue(inputs_[i].name);
    if (id == kNone) continue;
    Value& value = graph.value(id);
    value.overridable = false;
    if (inputs_[i].optional && !Contains(overrides, i)) continue;
    value.dims = inputs_[i].dims;
    if (inputs_[i].optional) graph.ReplaceWithInput(id);
  }
  return graph;
}

absl::StatusOr<std::shared_ptr<const ModelVariant>> ModelVariants::Get(
    const std::vector<int>& overrides) {
  MutexLock lock(mutex_);
  if (const auto it = built_.find(overrides); it != built_.end()) return it->second;
  auto variant = std::make_shared<ModelVariant>();
  variant->graph = WithInputs(overrides);
  RETURN_IF_ERROR(RunLoadPasses(variant->graph));
  variant->fingerprint = FingerprintGraph(variant->graph);
  for (ValueId id : variant->graph.inputs()) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].name != variant->graph.value(id).name || Contains(shape_inputs_, i)) continue;
      variant->recipe_inputs.push_back(i);
    }
  }
  if (built_.size() >= kMaxVariants) built_.clear();
  built_[overrides] = variant;
  return variant;
}

}  // namespace reprise

#include "runtime/engine/model_variants.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/tail.h"
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

// By input: whether values in `stack` are made of it. Where only a shape is read, or as many
// elements are made as the data says, values end; so they do at reductions, with
// `through_reductions` false.
std::vector<bool> InputsBehind(const Graph& graph, const std::vector<ModelIo>& inputs,
                               std::vector<ValueId> stack, bool through_reductions) {
  std::vector<bool> seen(graph.num_values(), false);
  std::vector<bool> found(inputs.size(), false);
  while (!stack.empty()) {
    const ValueId id = stack.back();
    stack.pop_back();
    if (id == kNone || seen[id]) continue;
    seen[id] = true;
    const Value& value = graph.value(id);
    if (value.kind == Value::Kind::kInput) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].name == value.name) found[i] = true;
      }
    } else if (value.kind == Value::Kind::kResult) {
      const Node& producer = graph.node(value.producer);
      const OpRow* row = FindOp(producer.op);
      if (row != nullptr && (row->Has(kShapeOnly) || row->Has(kDataDependent))) continue;
      const bool reduces = absl::StartsWith(producer.op, "Reduce") ||
                           absl::StartsWith(producer.op, "Arg") || producer.op == "CumSum";
      if (reduces && !through_reductions) continue;
      for (ValueId input : producer.inputs) stack.push_back(input);
    }
  }
  return found;
}

bool HasConstantDims(const ModelIo& input) {
  return absl::c_all_of(input.dims, [](const Dim& dim) { return dim.is_constant(); });
}

bool IsCount(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kBool;
}

// Elements of a shape input of another dtype than those of counts: a bound of a Range, the depth of
// a OneHot, the scales of a Resize.
constexpr int64_t kMaxMeasures = 8;

// An operand that decides a shape is a number or a short list of them, of its own length.
bool LooksLikeAShape(const ModelIo& input, const std::vector<ModelIo>& inputs) {
  if (input.dims.size() > 1) return false;
  if (HasConstantDims(input)) {
    const int64_t most = IsCount(input.dtype) ? kMaxShapeInputElements : kMaxMeasures;
    return input.dims.empty() || input.dims[0].size <= most;
  }
  if (!IsCount(input.dtype)) return false;
  return absl::c_none_of(inputs, [&](const ModelIo& other) {
    return &other != &input && absl::c_linear_search(other.dims, input.dims[0]);
  });
}

}  // namespace

std::vector<int> FindShapeInputs(const Graph& graph, const std::vector<ModelIo>& inputs) {
  std::vector<ValueId> deciding, sizes;  // `sizes`: but for conditions
  for (NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || row->Has(kDataDependent)) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!row->IsValueInput(i)) continue;
      deciding.push_back(node.inputs[i]);
      if (node.op != "If") sizes.push_back(node.inputs[i]);
    }
  }
  const std::vector<bool> behind = InputsBehind(graph, inputs, deciding, true);
  const std::vector<bool> unreduced = InputsBehind(graph, inputs, deciding, false);
  const std::vector<bool> as_size = InputsBehind(graph, inputs, sizes, false);
  std::vector<int> found;
  for (size_t i = 0; i < inputs.size(); ++i) {
    // The largest of a list of any length is data.
    // So is a measure that a condition compares: each value of it would be a recipe of its own.
    const bool decides = !IsCount(inputs[i].dtype)    ? as_size[i]
                         : HasConstantDims(inputs[i]) ? behind[i]
                                                      : unreduced[i];
    if (decides && LooksLikeAShape(inputs[i], inputs)) found.push_back(static_cast<int>(i));
  }
  return found;
}

ModelVariants::ModelVariants(Graph imported, std::vector<ModelIo> inputs,
                             std::vector<ModelIo> outputs)
    : imported_(std::move(imported)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
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
  variant->tail = CutModel(variant->graph, inputs_, shape_inputs_, outputs_);
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

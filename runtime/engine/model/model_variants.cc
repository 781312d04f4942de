#include "runtime/engine/model/model_variants.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model/tail.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/passes/kit/pass.h"

namespace reprise {
namespace {

// A client can choose 2^n sets of n initialisers; the list is cleared when it holds this many.
constexpr size_t kMaxVariants = 16;

bool Contains(const std::vector<int>& positions, size_t position) {
  return std::find(positions.begin(), positions.end(), static_cast<int>(position)) !=
         positions.end();
}

// The ways in which the elements of a value decide a shape.
enum Way : uint8_t {
  kSomehow = 1,
  kUnreduced = 2,  // not as their sum, their largest or a similar reduction
  kAsSize = 4,     // unreduced, and not as a condition alone
};

// Returns, by value, the ways in which it decides shapes. Where only a shape is read, or as many
// elements are made as the data says, a way ends.
std::vector<uint8_t> WaysToShapes(const Graph& graph) {
  std::vector<uint8_t> ways(graph.num_values(), 0);
  std::vector<ValueId> changed;
  const auto add = [&](ValueId id, uint8_t more) {
    if (id == kNone || (ways[id] | more) == ways[id]) return;
    ways[id] |= more;
    changed.push_back(id);
  };
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || row->Has(kDataDependent)) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!row->IsValueInput(i)) continue;
      add(node.inputs[i],
          node.op == IfOp::kName ? kSomehow | kUnreduced : kSomehow | kUnreduced | kAsSize);
    }
  }
  while (!changed.empty()) {
    const ValueId id = changed.back();
    changed.pop_back();
    if (graph.value(id).kind != Value::Kind::kResult) continue;
    const Node& producer = graph.node(graph.value(id).producer);
    const OpRow* row = FindOp(producer.op);
    if (row != nullptr && (row->Has(kShapeOnly) || row->Has(kDataDependent))) continue;
    const uint8_t passed = FactsOf(producer.op).Is(kReduces) ? ways[id] & kSomehow : ways[id];
    for (const ValueId input : producer.inputs) add(input, passed);
  }
  return ways;
}

bool HasConstantDims(const ModelIo& input) {
  return absl::c_all_of(input.dims, [](const Dim& dim) { return dim.is_constant(); });
}

bool IsCount(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kBool;
}

// Elements of a shape input of another dtype than a count's: a bound of a Range, the depth of a
// OneHot, the scales of a Resize.
constexpr int64_t kMaxMeasures = 8;

// Returns whether the input looks like a shape: an operand that decides a shape is a number or a
// short list of them, of its own length.
bool LooksLikeAShape(const ModelIo& input, const std::vector<ModelIo>& inputs) {
  if (input.dims.size() > 1 || input.text) return false;
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
  const std::vector<uint8_t> ways = WaysToShapes(graph);
  std::vector<int> found;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = graph.FindValue(inputs[i].name);
    if (id == kNone || graph.value(id).kind != Value::Kind::kInput) continue;
    // The largest of a list of any length is data.
    // So is a measure that a condition compares: each value of it would be a recipe of its own.
    const Way wanted = !IsCount(inputs[i].dtype)    ? kAsSize
                       : HasConstantDims(inputs[i]) ? kSomehow
                                                    : kUnreduced;
    const bool decides = (ways[id] & wanted) != 0;
    if (decides && LooksLikeAShape(inputs[i], inputs)) found.push_back(static_cast<int>(i));
  }
  return found;
}

ModelVariants::ModelVariants(Graph imported, std::vector<ModelIo> inputs,
                             std::vector<ModelIo> outputs, NodeChoice cut)
    : imported_(std::move(imported)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      cut_(std::move(cut)) {
  std::vector<int> all;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].optional && inputs_[i].parameter < 0) all.push_back(i);
  }
  shape_inputs_ = FindShapeInputs(WithInputs(all), inputs_);
}

Graph ModelVariants::WithInputs(const std::vector<int>& overrides) const {
  Graph graph = *imported_;
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
  RETURN_IF_ERROR(RunLoadPasses(*variant->graph));
  variant->tail = CutModel(*variant->graph, inputs_, shape_inputs_, outputs_, {.chosen = cut_});
  variant->fingerprint = FingerprintGraph(*variant->graph);
  for (ValueId id : variant->graph->inputs()) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].name != variant->graph->value(id).name || Contains(shape_inputs_, i)) continue;
      variant->recipe_inputs.push_back(i);
    }
  }
  if (built_.size() >= kMaxVariants) built_.clear();
  built_[overrides] = variant;
  return variant;
}

}  // namespace reprise

#include "server/hub/drop_caches.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"

namespace reprise {
namespace {

constexpr size_t kBatchDim = 0, kHeadsDim = 1, kTokensDim = 2, kSizeDim = 3, kCacheRank = 4;

// [batch, heads, tokens that are cached, size of a head].
bool IsCache(const ModelIo& io) {
  const bool is_float = io.dtype == DType::kFloat32 || io.dtype == DType::kFloat16;
  return is_float && io.dims.size() == kCacheRank && absl::StrContains(io.name, "past") &&
         io.dims[kHeadsDim].is_constant() && !io.dims[kTokensDim].is_constant() &&
         io.dims[kSizeDim].is_constant();
}

bool IsPresent(const ModelIo& io) {
  return absl::StrContains(io.name, "present") || absl::StrContains(io.name, "past");
}

const ModelIo* FindInputOf(const std::vector<ModelIo>& ios, absl::string_view name) {
  const auto it =
      std::find_if(ios.begin(), ios.end(), [&](const ModelIo& io) { return io.name == name; });
  return it == ios.end() ? nullptr : &*it;
}

// Returns the number of rows of the ids, [1].
ValueId RowsOf(Graph& graph, ValueId ids) {
  const auto add = [&](const char* op, std::vector<ValueId> inputs) {
    const NodeId node = graph.AddNode(op, std::move(inputs), {}, 1, absl::StrCat("no_cache/", op));
    return graph.node(node).outputs[0];
  };
  const auto constant = [&](int64_t value) {
    return graph.AddConstant("no_cache/constant", Tensor::Int64s({value}));
  };
  return add("Slice", {add("Shape", {ids}), constant(0), constant(1)});
}

// Replaces the input by as many rows of nothing as there are rows of ids.
void MakeEmpty(const ModelIo& cache, ValueId rows, Graph& graph) {
  const ValueId input = graph.FindValue(cache.name);
  const std::vector<NodeId> users = graph.value(input).users;
  const int64_t heads = cache.dims[kHeadsDim].size, size = cache.dims[kSizeDim].size;
  const auto sides = graph.AddConstant("no_cache/sides", Tensor::Int64s({heads, 0, size}));
  const NodeId shape =
      graph.AddNode("Concat", {rows, sides}, {{"axis", int64_t{kBatchDim}}}, 1, "no_cache/shape");
  // A value joined to nothing is the value: decided here, it holds for every size.
  for (const NodeId user : users) {
    const Node& node = graph.node(user);
    const int64_t axis = node.attributes.Int("axis", 0);
    const bool along_tokens = axis == kTokensDim || axis == -int64_t{kCacheRank - kTokensDim};
    if (node.op != "Concat" || node.inputs.size() != 2 || !along_tokens) continue;
    const size_t other = node.inputs[0] == input ? 1 : 0;
    if (node.inputs[other] == input) continue;
    graph.ReplaceAllUses(node.outputs[0], node.inputs[other]);
  }
  const NodeId wide =
      graph.AddNode("Expand", {input, graph.node(shape).outputs[0]}, {}, 1, "no_cache/rows");
  const ValueId empty = graph.node(wide).outputs[0];
  for (const NodeId user : users) {
    for (size_t i = 0; i < graph.node(user).inputs.size(); ++i) {
      if (graph.node(user).inputs[i] == input) graph.SetInput(user, i, empty);
    }
  }
  graph.ReplaceWithConstant(input, Tensor::Make(cache.dtype, {1, heads, 0, size}, [](void*) {}));
}

}  // namespace

bool HasCaches(const ImportedModel& model) {
  return std::any_of(model.inputs.begin(), model.inputs.end(), IsCache);
}

void DropCaches(ImportedModel& model) {
  const ModelIo* ids = FindInputOf(model.inputs, "input_ids");
  if (ids == nullptr || ids->dims.size() != 2) return;
  const std::vector<ValueId> values = model.graph.outputs();
  std::vector<ModelIo> outputs;
  model.graph.ClearOutputs();
  for (size_t i = 0; i < values.size(); ++i) {
    if (IsPresent(model.outputs[i])) continue;
    model.graph.AddOutput(values[i]);
    outputs.push_back(std::move(model.outputs[i]));
  }
  model.outputs = std::move(outputs);
  const Dim tokens = ids->dims[1];
  const ValueId rows = RowsOf(model.graph, model.graph.FindValue("input_ids"));
  for (const ModelIo& input : model.inputs) {
    if (IsCache(input)) MakeEmpty(input, rows, model.graph);
  }
  std::erase_if(model.inputs, IsCache);
  for (ModelIo& input : model.inputs) {
    if (input.dims.size() != 2 || !absl::StrContains(input.name, "mask")) continue;
    input.dims[1] = tokens;
    Value& value = model.graph.value(model.graph.FindValue(input.name));
    if (value.dims.size() == 2) value.dims[1] = tokens;
  }
  model.graph.Compact();
}

}  // namespace reprise

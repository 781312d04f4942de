// Convolutions of bytes take and give planes with their channels last, where a window's channels
// lie side by side and are a row of a product. So do sums and pools of bytes behind them: what
// turns the planes moves to where floats begin, and what turns them back and forth goes
// (canonicalize).
#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/ops/quantize.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/quantized.h"
#include "runtime/passes/rewrite.h"

namespace reprise {
namespace {

// Planes of so few channels are read where they are: there is little to have side by side.
constexpr int64_t kFewChannels = 4;
constexpr size_t kMostDims = 4;

std::vector<int64_t> PermToLast(size_t rank) {
  std::vector<int64_t> perm = {0};
  for (size_t i = 2; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  perm.push_back(1);
  return perm;
}

std::vector<int64_t> PermToFirst(size_t rank) {
  std::vector<int64_t> perm = {0, static_cast<int64_t>(rank) - 1};
  for (size_t i = 1; i + 1 < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  return perm;
}

// What `value` is with its channels last, where it was so before; kNone: it was not.
ValueId WasLast(const Graph& graph, ValueId value) {
  const Node* node = graph.ProducerIf(value, "Transpose");
  if (node == nullptr || !ShapeOf(graph, value).has_value()) return kNone;
  const size_t rank = ShapeOf(graph, value)->size();
  return rank > 2 && node->attributes.Ints("perm") == PermToFirst(rank) ? node->inputs[0] : kNone;
}

absl::StatusOr<ValueId> ToLast(Graph& graph, ValueId value) {
  if (const ValueId last = WasLast(graph, value); last != kNone) return last;
  return AddInferred(graph, "Transpose", {value},
                     {{"perm", PermToLast(ShapeOf(graph, value)->size())}});
}

// `last` in place of `first`.
absl::Status ReplaceByLast(Graph& graph, ValueId first, ValueId last) {
  const size_t rank = ShapeOf(graph, first)->size();
  ASSIGN_OR_RETURN(const ValueId turned,
                   AddInferred(graph, "Transpose", {last}, {{"perm", PermToFirst(rank)}}));
  Replace(graph, first, turned);
  return absl::OkStatus();
}

absl::StatusOr<bool> TurnConv(Graph& graph, const Node& node) {
  if (node.op != "reprise.IntegerConv" || node.attributes.String("layout", "first") != "first" ||
      !IsParameter(graph, node.inputs[1])) {
    return false;
  }
  const Shape shape = *ShapeOf(graph, node.inputs[0]);
  if (shape.size() > kMostDims) return false;
  std::vector<ValueId> inputs = node.inputs;
  Attributes attributes = node.attributes;
  const bool few = shape[1] <= kFewChannels && WasLast(graph, inputs[0]) == kNone;
  attributes.Set("layout", std::string(few ? "to_last" : "last"));
  if (!few) {
    ASSIGN_OR_RETURN(inputs[0], ToLast(graph, inputs[0]));
  }
  constexpr size_t kResidual = 7;
  if (node.input(kResidual) != kNone) {
    ASSIGN_OR_RETURN(inputs[kResidual], ToLast(graph, inputs[kResidual]));
  }
  ASSIGN_OR_RETURN(const ValueId last, AddInferred(graph, node.op, std::move(inputs),
                                                   std::move(attributes), node.name));
  RETURN_IF_ERROR(ReplaceByLast(graph, node.outputs[0], last));
  return true;
}

absl::StatusOr<bool> TurnAdd(Graph& graph, const Node& node) {
  if (node.op != "reprise.IntegerAdd" ||
      (WasLast(graph, node.inputs[0]) == kNone && WasLast(graph, node.inputs[1]) == kNone)) {
    return false;
  }
  std::vector<ValueId> inputs = node.inputs;
  for (size_t i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(inputs[i], ToLast(graph, inputs[i]));
  }
  ASSIGN_OR_RETURN(const ValueId last,
                   AddInferred(graph, node.op, std::move(inputs), node.attributes, node.name));
  RETURN_IF_ERROR(ReplaceByLast(graph, node.outputs[0], last));
  return true;
}

// One positive scale for all: the largest byte is the largest float.
bool KeepsOrder(const Graph& graph, const Node& dequantize) {
  if (dequantize.attributes.Int("block_size", 0) != 0) return false;
  const std::optional<double> scale = KnownScalar(graph, dequantize.inputs[1]);
  return scale.has_value() && *scale > 0 && *scale <= std::numeric_limits<float>::max() / 512;
}

// Of dequantised planes: the pool is of their bytes, channels being one more dim of the windows.
absl::StatusOr<bool> TurnMaxPool(Graph& graph, const Node& node) {
  if (node.op != "MaxPool") return false;
  const Node* from = graph.ProducerIf(node.inputs[0], "DequantizeLinear");
  if (from == nullptr || node.output(1) != kNone || !IsFloat32(graph, node.outputs[0]) ||
      !ops::IsByte(graph.value(from->inputs[0]).dtype) || !KeepsOrder(graph, *from)) {
    return false;
  }
  const Node dequantize = *from;
  const ValueId bytes = WasLast(graph, dequantize.inputs[0]);
  if (bytes == kNone) return false;
  Shape planes = *ShapeOf(graph, bytes);
  planes.insert(planes.begin() + 1, 1);
  Attributes attributes = node.attributes;
  for (const char* const name : {"kernel_shape", "strides", "dilations"}) {
    std::vector<int64_t> sizes = attributes.Ints(name);
    if (sizes.empty()) continue;
    sizes.push_back(1);
    attributes.Set(name, std::move(sizes));
  }
  if (std::vector<int64_t> pads = attributes.Ints("pads"); !pads.empty()) {
    pads.insert(pads.begin() + static_cast<int64_t>(pads.size() / 2), 0);
    pads.push_back(0);
    attributes.Set("pads", std::move(pads));
  }
  ASSIGN_OR_RETURN(ValueId pooled, AddReshape(graph, bytes, planes));
  ASSIGN_OR_RETURN(pooled, AddInferred(graph, "MaxPool", {pooled}, attributes, node.name));
  Shape last = *ShapeOf(graph, pooled);
  last.erase(last.begin() + 1);
  ASSIGN_OR_RETURN(pooled, AddReshape(graph, pooled, last));
  ASSIGN_OR_RETURN(const ValueId first,
                   AddInferred(graph, "Transpose", {pooled}, {{"perm", PermToFirst(last.size())}}));
  std::vector<ValueId> inputs = dequantize.inputs;
  inputs[0] = first;
  ASSIGN_OR_RETURN(const ValueId floats, AddInferred(graph, "DequantizeLinear", std::move(inputs),
                                                     dequantize.attributes));
  Replace(graph, node.outputs[0], floats);
  return true;
}

class ChannelsLastPass : public Pass {
 public:
  absl::string_view name() const override { return "channels_last"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    for (NodeId id : graph.NodeIds()) {
      for (const auto turn : {TurnConv, TurnAdd, TurnMaxPool}) {
        if (graph.node(id).removed) break;
        const Node node = graph.node(id);  // Adding nodes moves the others.
        ASSIGN_OR_RETURN(const bool turned, turn(graph, node));
        changed |= turned;
      }
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> ChannelsLast() { return std::make_unique<ChannelsLastPass>(); }

}  // namespace reprise

#include "runtime/ops/result_types.h"

#include "runtime/graph/graph.h"
#include "runtime/ops/control/loop.h"
#include "runtime/ops/growing_types.h"
#include "runtime/ops/kit/onnx_types.h"

namespace reprise {
namespace ops {
namespace {

DType Numbered(int64_t number) {
  const absl::StatusOr<DType> dtype = DTypeFromOnnx(number);
  return dtype.ok() ? *dtype : DType::kUndefined;
}

DType At(absl::Span<const DType> operands, size_t i) {
  return i < operands.size() ? operands[i] : DType::kUndefined;
}

}  // namespace

DType CastTypes(const Node& node, size_t, absl::Span<const DType>) {
  return Numbered(node.attributes.Int("to", 0));
}

DType ConstantOfShapeTypes(const Node& node, size_t, absl::Span<const DType>) {
  const Tensor* value = node.attributes.Get<Tensor>("value");
  return value == nullptr ? DType::kFloat32 : value->dtype();
}

DType QuantizeLinearTypes(const Node& node, size_t, absl::Span<const DType> operands) {
  if (node.input(2) != kNone) return At(operands, 2);
  const int64_t number = node.attributes.Int("output_dtype", 0);
  return number == 0 ? DType::kUInt8 : Numbered(number);
}

DType RandomTypes(const Node& node, size_t, absl::Span<const DType>) {
  return Numbered(node.attributes.Int("dtype", OnnxNumber(DType::kFloat32)));
}

DType DTypeOrLikeTypes(const Node& node, size_t, absl::Span<const DType> operands) {
  return node.attributes.Has("dtype") ? Numbered(node.attributes.Int("dtype", 0)) : At(operands, 0);
}

DType StashTypes(const Node& node, size_t, absl::Span<const DType>) {
  return Numbered(node.attributes.Int("stash_type", OnnxNumber(DType::kFloat32)));
}

DType ClassScoresTypes(const Node& node, size_t, absl::Span<const DType>) {
  return node.attributes.Int("double", 0) != 0 ? DType::kFloat64 : DType::kFloat32;
}

DType IfTypes(const Node& node, size_t result, absl::Span<const DType> operands) {
  const size_t results = node.inputs.size() / 2;
  const DType first = At(operands, 1 + result), second = At(operands, 1 + result + results);
  if (first == DType::kUndefined) return second;
  return first == second || second == DType::kUndefined ? first : DType::kUndefined;
}

DType LoopTypes(const Node& node, size_t result, absl::Span<const DType> operands) {
  const LoopParts parts(node);
  const DType first =
      result < parts.carried ? At(operands, LoopParts::kFirstCarried + result) : DType::kUndefined;
  return first != DType::kUndefined ? first : At(operands, parts.first_result + 1 + result);
}

DType LoopStepTypes(const Node& node, size_t result, absl::Span<const DType>) {
  const std::vector<int64_t> declared = node.attributes.Ints("dtypes");
  return result < declared.size() ? Numbered(declared[result]) : DType::kUndefined;
}

}  // namespace ops

const std::vector<DType>& GrowingTypes::Of(const Graph& graph) {
  const auto first = static_cast<ValueId>(types_.size());
  types_.resize(graph.num_values(), DType::kUndefined);
  for (ValueId id = first; id < static_cast<ValueId>(types_.size()); ++id) {
    if (graph.value(id).kind != Value::Kind::kResult) types_[id] = graph.value(id).dtype;
  }
  std::vector<DType> operands;
  for (; next_ < static_cast<NodeId>(graph.num_nodes()); ++next_) {
    const Node& node = graph.node(next_);
    const OpRow* row = node.removed ? nullptr : FindOp(node.op);
    if (row == nullptr) continue;
    operands.clear();
    for (const ValueId input : node.inputs) {
      operands.push_back(input == kNone ? DType::kUndefined : types_[input]);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) types_[node.outputs[i]] = row->types(node, i, operands);
    }
  }
  return types_;
}

std::vector<DType> ResultTypes(const Graph& graph) { return GrowingTypes().Of(graph); }

}  // namespace reprise

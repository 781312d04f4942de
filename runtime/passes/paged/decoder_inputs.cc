#include "runtime/passes/paged/decoder_inputs.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/ops/attention/paged_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"

namespace reprise {

Tensor NumbersAs(DType dtype, const Shape& shape, const std::vector<int64_t>& values) {
  if (dtype == DType::kInt32) {
    return Tensor::FromVector<int32_t>(dtype, shape, {values.begin(), values.end()});
  }
  if (dtype != DType::kBool) return Tensor::FromVector<int64_t>(dtype, shape, values);
  return Tensor::Make(dtype, shape, [&](void* data) {
    absl::c_transform(values, static_cast<bool*>(data), [](int64_t value) { return value != 0; });
  });
}

void TakeInput(Graph& graph, const std::string& name, ValueId value) {
  const ValueId input = graph.FindValue(name);
  const DType dtype = graph.value(input).dtype;
  graph.ReplaceAllUses(input, value);
  graph.ReplaceWithConstant(input, Tensor::Make(dtype, {0}, [](void*) {}));
}

ValueId AddCachedRows(Graph& graph, ValueId tokens, Attributes attributes) {
  const NodeId node = graph.AddNode(CachedRowsOp::kName, {tokens}, std::move(attributes));
  return graph.node(node).outputs[0];
}

ValueId CastRows(Graph& graph, ValueId rows, DType dtype) {
  if (dtype == DType::kFloat32) return rows;
  const NodeId cast = graph.AddNode(CastOp::kName, {rows}, {{"to", ops::OnnxNumber(dtype)}});
  return graph.node(cast).outputs[0];
}

}  // namespace reprise

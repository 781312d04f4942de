#include "runtime/onnx/initializers.h"

#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/weights/bits_op.h"
#include "runtime/ops/weights/narrowed_weights.h"

namespace reprise {

absl::Status Initializers::DefineUnread(const std::string& name) {
  unread_.insert(name);
  return values_.DefineUnread(name);
}

absl::Status Initializers::Add(const onnx::GraphProto& graph, const SlimModel& slim,
                               TensorReader& tensors) {
  for (const auto& sparse : graph.sparse_initializer()) {
    const std::string& name = sparse.values().name();
    RETURN_IF_ERROR(Define(name, tensors.ReadSparse(sparse, Quoted("initializer", name))));
  }
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const absl::string_view raw =
        static_cast<size_t>(i) < slim.raw_data.size() ? slim.raw_data[i] : absl::string_view();
    const onnx::TensorProto& proto = graph.initializer(i);
    if (TensorReader::HoldsNibbles(proto)) {
      RETURN_IF_ERROR(AddNibbles(proto, raw, tensors));
      continue;
    }
    RETURN_IF_ERROR(
        Define(proto.name(), tensors.Read(proto, raw, Quoted("initializer", proto.name()))));
  }
  return absl::OkStatus();
}

absl::Status Initializers::Define(const std::string& name, absl::StatusOr<Tensor> tensor) {
  if (!tensor.ok()) {
    RETURN_IF_ERROR(values_.NoteOrReturn(tensor.status()));
    return DefineUnread(name);
  }
  const DType half = ops::HalfThatHolds(*tensor);
  const ValueId id = values_.AddTensor(name, *std::move(tensor));
  Value& value = values_.model.graph.value(id);
  if (half != DType::kUndefined && value.kind == Value::Kind::kParameter) {
    value.parameter = ops::Narrowed(value.parameter, half);
  }
  return values_.Define(name, id);
}

// Adds one of int8 or uint8, by the prepare program where it is large.
absl::Status Initializers::AddNibbles(const onnx::TensorProto& proto, absl::string_view raw,
                                      TensorReader& tensors) {
  auto bytes = tensors.ReadNibbles(proto, raw, Quoted("initializer", proto.name()));
  if (!bytes.ok()) {
    RETURN_IF_ERROR(values_.NoteOrReturn(bytes.status()));
    return DefineUnread(proto.name());
  }
  const bool is_signed = proto.data_type() == ops::kOnnxInt4;
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  Attributes attributes = {{"shape", dims}, {"signed", int64_t{is_signed}}};
  ValueId id = kNone;
  if (IsParameterLike(bytes->dtype(), bytes->num_elements())) {
    const Shape packed = bytes->shape();
    const int index = values_.KeepParameter(*std::move(bytes));
    id = values_.model.graph.AddParameter(
        proto.name(), ParameterExpr::Apply(UnpackNibblesOp::kName, std::move(attributes),
                                           {ParameterExpr::Leaf(index, DType::kUInt8, packed)},
                                           is_signed ? DType::kInt8 : DType::kUInt8,
                                           Shape(dims.begin(), dims.end())));
  } else {
    Node node;
    node.op = UnpackNibblesOp::kName;
    node.attributes = std::move(attributes);
    node.inputs = {0};
    node.outputs = {1};
    ASSIGN_OR_RETURN(std::vector<Tensor> results,
                     Evaluate(node, {*std::move(bytes)}, 2 * kMinParameterElements));
    id = values_.AddTensor(proto.name(), std::move(results[0]));
  }
  return values_.Define(proto.name(), id);
}

}  // namespace reprise

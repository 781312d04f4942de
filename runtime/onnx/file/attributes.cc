#include "runtime/onnx/file/attributes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

absl::StatusOr<Attribute> ReadAttribute(const onnx::AttributeProto& proto, TensorReader& tensors) {
  const std::string label = absl::StrCat("attribute '", proto.name(), "'");
  onnx::AttributeProto::AttributeType type = proto.type();
  if (type == onnx::AttributeProto::UNDEFINED) {
    // Files of the first format versions leave the type out.
    if (proto.has_f()) type = onnx::AttributeProto::FLOAT;
    if (proto.has_i()) type = onnx::AttributeProto::INT;
    if (proto.has_s()) type = onnx::AttributeProto::STRING;
    if (proto.has_t()) type = onnx::AttributeProto::TENSOR;
    if (proto.has_sparse_tensor()) type = onnx::AttributeProto::SPARSE_TENSOR;
    if (proto.floats_size() > 0) type = onnx::AttributeProto::FLOATS;
    if (proto.ints_size() > 0) type = onnx::AttributeProto::INTS;
    if (proto.strings_size() > 0) type = onnx::AttributeProto::STRINGS;
  }
  switch (type) {
    case onnx::AttributeProto::FLOAT:
      return Attribute(proto.f());
    case onnx::AttributeProto::INT:
      return Attribute(static_cast<int64_t>(proto.i()));
    case onnx::AttributeProto::STRING:
      return Attribute(proto.s());
    case onnx::AttributeProto::FLOATS:
      return Attribute(std::vector<float>(proto.floats().begin(), proto.floats().end()));
    case onnx::AttributeProto::INTS:
      return Attribute(std::vector<int64_t>(proto.ints().begin(), proto.ints().end()));
    case onnx::AttributeProto::STRINGS:
      return Attribute(std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
    case onnx::AttributeProto::TENSOR: {
      ASSIGN_OR_RETURN(Tensor tensor, tensors.Read(proto.t(), {}, label));
      return Attribute(tensor.Aligned());
    }
    case onnx::AttributeProto::SPARSE_TENSOR: {
      ASSIGN_OR_RETURN(Tensor tensor, tensors.ReadSparse(proto.sparse_tensor(), label));
      return Attribute(std::move(tensor));
    }
    default:
      return absl::UnimplementedError(absl::StrCat(
          label, " of type ", onnx::AttributeProto::AttributeType_Name(type), " is not supported"));
  }
}

}  // namespace

absl::StatusOr<Attributes> ReadAttributes(const onnx::NodeProto& node, TensorReader& tensors) {
  Attributes attributes;
  for (const onnx::AttributeProto& proto : node.attribute()) {
    if (!proto.ref_attr_name().empty()) {
      return absl::InvalidArgumentError(absl::StrCat("attribute '", proto.name(),
                                                     "' refers to a function's attribute '",
                                                     proto.ref_attr_name(), "'"));
    }
    if (attributes.Has(proto.name())) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", proto.name(), "' is given twice"));
    }
    ASSIGN_OR_RETURN(Attribute attribute, ReadAttribute(proto, tensors));
    attributes.Set(proto.name(), std::move(attribute));
  }
  return attributes;
}

absl::StatusOr<Tensor> ConstantValue(const Attributes& attributes, const Vocabulary& vocabulary) {
  for (const absl::string_view name : {"value", "sparse_value"}) {
    if (const auto* value = attributes.Get<Tensor>(name)) return *value;
  }
  if (const auto* value = attributes.Get<int64_t>("value_int")) return Tensor::Int64Scalar(*value);
  if (const auto* value = attributes.Get<float>("value_float")) return Tensor::FloatScalar(*value);
  if (const auto* value = attributes.Get<std::vector<int64_t>>("value_ints")) {
    return Tensor::Int64s(*value);
  }
  if (const auto* value = attributes.Get<std::vector<float>>("value_floats")) {
    return Tensor::FromVector(DType::kFloat32, {static_cast<int64_t>(value->size())}, *value);
  }
  const auto place = [&](const std::string& text) {
    return vocabulary.Find(text).value_or(Vocabulary::kNoText);
  };
  if (const auto* value = attributes.Get<std::string>("value_string")) {
    return Tensor::Int64Scalar(place(*value));
  }
  if (const auto* value = attributes.Get<std::vector<std::string>>("value_strings")) {
    std::vector<int64_t> places(value->size());
    std::transform(value->begin(), value->end(), places.begin(), place);
    return Tensor::Int64s(places);
  }
  return absl::InvalidArgumentError("has no value");
}

}  // namespace reprise

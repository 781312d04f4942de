// AttributeProto -> Attribute.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/graph/attribute.h"
#include "runtime/graph/vocabulary.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/file/tensors.h"

namespace reprise {

// Returns the attributes of `node`. UNIMPLEMENTED for graphs, sparse tensors and types;
// INVALID_ARGUMENT for broken ones. Errors name the attribute.
absl::StatusOr<Attributes> ReadAttributes(const onnx::NodeProto& node, TensorReader& tensors);

// Returns the value of a Constant node, in any of its forms; of text the places in `vocabulary`,
// which has it.
absl::StatusOr<Tensor> ConstantValue(const Attributes& attributes, const Vocabulary& vocabulary);

}  // namespace reprise

// Reads the fields of a model file that are newer than the ONNX messages which we are built with:
// protobuf keeps them as unknown fields. With newer messages they are read from there.
//
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

// Returns which of the model's functions of one name a node calls, or a function is (format
// version 10); "" where nothing is said.
std::string OverloadOf(const onnx::NodeProto& node);
std::string OverloadOf(const onnx::FunctionProto& function);

// Attributes of a function that have a default, which a call need not give (format version 9).
// INVALID_ARGUMENT where one cannot be read.
absl::StatusOr<std::vector<onnx::AttributeProto>> DefaultsOf(const onnx::FunctionProto& function);

}  // namespace reprise

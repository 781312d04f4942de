// The inputs and outputs that a file declares.
//
// Threads: pure.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/file_values.h"
#include "runtime/onnx/values/texts.h"

namespace reprise {

// Returns the declared name, dtype and dims; an unnamed dim gets "<value>:<position>" as its
// symbol. UNIMPLEMENTED for a value that is no tensor, has no declared rank or a dtype that we
// lack.
absl::StatusOr<ModelIo> DeclaredType(const onnx::ValueInfoProto& info);

// Returns the names of inputs that a request gives and that have no declared rank.
std::vector<std::string> NamesWithoutRank(const onnx::GraphProto& graph);

// Adds the inputs of `model`, whose initializers are there, to `values`; an input that is an
// initializer as well may be left out by a request, one without a declared rank has the rank in
// `ranks`. `is_unread`: initializers to skip; `no_tensor` is told the names of inputs that are
// lists or maps; `texts` the names of text inputs. An unreadable input is a reason.
absl::Status AddInputs(const onnx::ModelProto& model, const InputRanks& ranks,
                       absl::FunctionRef<bool(const std::string&)> is_unread,
                       absl::FunctionRef<void(const std::string&)> no_tensor, TextWalk& texts,
                       FileValues& values);

// Adds the outputs, once all nodes are there. `is_sequence`: values that are no tensors. Errors
// name the first one that cannot be answered with.
absl::Status AddOutputs(const onnx::GraphProto& graph,
                        absl::FunctionRef<bool(const std::string&)> is_sequence,
                        const TextWalk& texts, FileValues& values);

}  // namespace reprise

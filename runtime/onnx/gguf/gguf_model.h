// A GGUF file as an ONNX model: the graph that its architecture stands for, over its tensors.
//
// A file holds weights, sizes and the name of an architecture; the graph is written here as
// exporters would write it, so that everything after the importer knows no other kind of file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/onnx/file/file_bytes.h"
#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

// Returns the model at `path`, whose bytes are `file`. Its initializers are external data in the
// file. Errors as of GgufFile; UNIMPLEMENTED for an architecture, a setting or a tensor that is
// not known, INVALID_ARGUMENT for one that is missing or has the wrong shape; all by name.
absl::StatusOr<onnx::ModelProto> GgufAsOnnx(const std::string& path, const FileBytes& file);

}  // namespace reprise

// FreeSeparator: a separator for the parts of generated names, which no name of the file contains.
#pragma once

#include <string>

#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

// Returns enough '#' that no name of a value or node of `model` holds them, subgraphs and
// functions included. A name with them is then none of the file, and falls into its parts in one
// way.
std::string FreeSeparator(const onnx::ModelProto& model);

}  // namespace reprise

// The exporter's remarks on a node besides the computation: scopes, the stack of the line of
// source.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

// Keys and values (`metadata_props`, of format version 10).
std::vector<std::pair<std::string, std::string>> MetadataOf(const onnx::NodeProto& node);

}  // namespace reprise

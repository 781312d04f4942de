// MergeModels: ONNX models one after another as one file's message, so that they are captured as
// one graph and nothing is handed over between them.
//
// Values inside of a part are called "LABEL/NAME": two parts may use the same names.
//
// Threads: pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

struct ModelPart {
  std::string label;  // "encoder"
  onnx::ModelProto model;
  // Names of its inputs and outputs in the merged model; the others keep theirs.
  std::map<std::string, std::string> inputs, outputs;
};

// Returns the model that runs `parts` in their order. An input whose name an earlier part makes is
// that output; one that an earlier part takes too is the same input of the model; all others are
// inputs of the model. Outputs are `outputs`, by their names in the merged model; if empty, all
// that no later part reads.
//
// INVALID_ARGUMENT naming parts and both sides: a name of `inputs` or `outputs` that the part does
// not have, two types that differ, two parts that make one name, versions of one operator set or
// functions that differ.
absl::StatusOr<onnx::ModelProto> MergeModels(const std::vector<ModelPart>& parts,
                                             const std::vector<std::string>& outputs = {});

// Reads the model at `path` with all its weights, those in other files of its folder too.
// INVALID_ARGUMENT for a file that is no ONNX model; RESOURCE_EXHAUSTED for weights that one
// message cannot hold (2 GiB).
absl::StatusOr<onnx::ModelProto> ReadWholeModel(const std::string& path);

}  // namespace reprise

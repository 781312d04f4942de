// SourceModel: the ONNX model that a version is loaded from where that is more than its file: an
// ensemble of several files, or a file whose weights are replaced.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/model_config.pb.h"
#include "runtime/onnx/importer.h"
#include "runtime/recipe/key.h"

namespace reprise {

// The weights that a version is to have in place of those of its file.
struct NewWeights {
  // An ONNX file of the same graph, or a safetensors file with tensors by the names that they have
  // as initialisers: those that it has not stay. Null: none are replaced.
  std::shared_ptr<const std::string> bytes;
  GraphFingerprint graph;  // which the model has to have then
};

// Returns the file of a model; `version` below 1: of its newest.
using FindModelFileOf =
    std::function<absl::StatusOr<std::string>(const std::string& name, int64_t version)>;

// Returns the model of `config`'s ensemble: its steps one after another, as `reprise merge` joins
// files. Errors: INVALID_ARGUMENT naming the step: an input that no map names, tensors that nothing
// makes, steps that wait for each other; errors of MergeModels and of `file_of`.
absl::StatusOr<ImportedModel> ImportEnsemble(const inference::ModelConfig& config,
                                             const FindModelFileOf& file_of);

// Returns the model at `path` with `weights`. Errors: INVALID_ARGUMENT for bytes that are neither
// kind of file, and for a tensor that is no initialiser or has another type or shape.
absl::StatusOr<ImportedModel> ImportWithWeights(const std::string& path, const NewWeights& weights);

// Returns INVALID_ARGUMENT unless `graph` is the one that `weights`, if there are any, are for: all
// recipes of the model before are recipes of this one then.
absl::Status CheckGraph(const NewWeights& weights, const GraphFingerprint& graph);

}  // namespace reprise

// Signature: a model's inputs and outputs as clients see them, reconciled with config.pbtxt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/model_config.pb.h"
#include "runtime/onnx/model_io.h"
#include "server/config/model_settings.h"

namespace reprise {

// Facts that a loaded model states about itself.
struct ModelFacts {
  std::vector<ModelIo> inputs;
  std::vector<ModelIo> outputs;
  std::vector<std::string> axes;  // labels; "batch" is one of them if there is a batch axis
  int64_t max_batch = 0;          // rows of one replay; 0: requests share none
};

// Inputs that the server fills and outputs that it keeps as state: clients neither send the former
// nor are answered the latter. By position; empty: there are none.
struct HiddenTensors {
  std::vector<bool> inputs, outputs;

  bool input(size_t i) const { return !inputs.empty() && inputs[i]; }
  bool output(size_t i) const { return !outputs.empty() && outputs[i]; }
};

struct Signature {
  std::vector<ModelIo> inputs;  // dims that the config fixes are fixed
  std::vector<ModelIo> outputs;
  HiddenTensors hidden;
  // The answer of ModelConfig: complete, whatever the file left out.
  inference::ModelConfig config;
};

// Errors: INVALID_ARGUMENT naming both sides, when the config and the model disagree: names, data
// types, dims, axis labels, a batch size without a batch axis.
absl::StatusOr<Signature> Reconcile(const ModelSettings& settings, const std::string& name,
                                    const ModelFacts& facts);

// Returns the whole shape, the batch dim included; -1 where the request decides.
std::vector<int64_t> MetadataShape(const ModelIo& io);

// Returns `signature`, of one choice of ranks, as the signature of a model whose requests decide
// the ranks of the inputs `open`: those and the outputs have no dims.
Signature WithOpenRanks(Signature signature, const std::vector<std::string>& open);

}  // namespace reprise

// StatefulForm: the inputs and outputs of a model that are state, by `sequence_batching`
// in config.pbtxt, and the values that the server puts into them.
//
// A state is an input that takes an output of the answer to the request before. A control input
// tells the model where a sequence begins or ends, that a row belongs to a request, and which
// sequence that is. Clients send neither.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/model_settings.h"
#include "server/repository/signature.h"

namespace reprise {

struct ControlTensor {
  enum class Kind { kStart, kEnd, kReady, kId };
  size_t input = 0;  // position
  Kind kind = Kind::kStart;
  std::string no, yes;  // the bytes of an element, except for kId
};

struct StateTensor {
  size_t input = 0, output = 0;  // positions
  // Sizes of the first state; -1: as large as the dim of a client's input with the same symbol.
  std::vector<int64_t> sizes;
  // The first state of one row, repeated for others; empty: zeros.
  std::string first_row;
};

struct StatefulForm {
  std::vector<ControlTensor> controls;
  std::vector<StateTensor> states;
  int64_t max_idle_ns = 0;
  int64_t max_candidates = 0;  // sequences that are computed side by side; 0: any number
};

// `model_folder`: holds the folder `initial_state` with the files that config.pbtxt names. Errors:
// INVALID_ARGUMENT naming the values of config and model, UNIMPLEMENTED for a form that we lack.
absl::StatusOr<StatefulForm> MakeStatefulForm(const ModelSettings& settings,
                                              const Signature& signature,
                                              const std::string& model_folder);

}  // namespace reprise

// The tensors that the server adds to a request of a sequence: its state and its flags.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/engine/types/request.h"
#include "server/repository/servable.h"
#include "server/repository/stateful_form.h"
#include "server/requests/request.h"

namespace reprise {

// State between two requests of a sequence, a tensor for each of StatefulForm::states; empty before
// the first one.
using SequenceState = std::vector<OutputTensor>;

int64_t BytesOf(const SequenceState& state);

// The memory of added inputs. Its address must not change while the request uses it.
struct AddedInputs {
  std::vector<Shape> shapes;
  std::vector<std::string> bytes;
};

// Adds control inputs and state to `asked` and to `request`, which was admitted, and asks for the
// outputs that are state. `state` stays the caller's. Errors: INVALID_ARGUMENT where the model
// cannot be told such an id.
absl::Status AddSequenceInputs(const Signature& signature, const StatefulForm& form,
                               const SequenceState& state, AddedInputs& added, InferRequest& asked,
                               Request& request);

// Returns the id as people read it: 7, or "a" in quotes.
std::string SequenceName(const SequenceMark& mark);

}  // namespace reprise

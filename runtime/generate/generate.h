// Generate: the tokens of one request, whole: for a program that has an engine of its own.
//
//   ASSIGN_OR_RETURN(auto generator, Generator::Create(engine, model, {}));
//   ASSIGN_OR_RETURN(auto answers, Generate(*generator, {.ids = {1, 4093, 198}}));
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/generate/generator.h"

namespace reprise {

struct GeneratedAnswer {
  std::vector<SampledToken> tokens;
  Ending finish = Ending::kGoesOn;
};

// Steps `generator`, on this thread and as its only stepper, until the request is answered; others
// that were submitted go on meanwhile. One answer for each of the request's n. Errors: those of
// Submit, and the status that ended an answer.
absl::StatusOr<std::vector<GeneratedAnswer>> Generate(Generator& generator,
                                                      GenerationRequest request);

}  // namespace reprise

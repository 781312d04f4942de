// The end of a request: the answers of its parts become the one that its client gets, and it is
// counted.
#pragma once

#include <vector>

#include "runtime/base/clock.h"
#include "server/repository/statistics.h"
#include "server/requests/stage.h"

namespace reprise {

struct PartAnswer {
  Response response;
  PhaseTimes times;
};

// Joins `answers`, the answers of all parts of the request, takes the result through the steps of
// `on_answer`, and counts it. Throws nothing: where there is no memory for an answer, that is the
// result.
InferResult FinishRequest(const RequestState& state, std::vector<PartAnswer>& answers,
                          const Clock& clock);

}  // namespace reprise

// THE list of stages that a request walks through before it is queued.
#pragma once

#include <vector>

#include "server/hub/text_models.h"
#include "server/repository/repository.h"
#include "server/requests/stage.h"
#include "server/text/text_threads.h"

namespace reprise {

// Returns the stages; all outlive them. `texts`: models that take an input "text"; null: none does.
// `threads`: where such inputs become tokens; null: on the thread that brings the request.
std::vector<Stage> RequestStages(const Repository& repository, const TextModels* texts = nullptr,
                                 TextThreads* threads = nullptr);

}  // namespace reprise

// THE list of stages that a request walks through before it is queued.
#pragma once

#include <vector>

#include "server/hub/text_models.h"
#include "server/repository/repository.h"
#include "server/requests/stage.h"

namespace reprise {

// Both outlive them. `texts`: whose models take an input "text"; null: none does.
std::vector<Stage> RequestStages(const Repository& repository, const TextModels* texts = nullptr);

}  // namespace reprise

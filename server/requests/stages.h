// THE list of stages that a request walks through before it is queued.
#pragma once

#include <vector>

#include "server/repository/repository.h"
#include "server/requests/stage.h"

namespace reprise {

// `repository` outlives them.
std::vector<Stage> RequestStages(const Repository& repository);

}  // namespace reprise

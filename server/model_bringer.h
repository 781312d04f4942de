// ModelBringer: brings models from elsewhere as the flags say, with lines in the log.
#pragma once

#include "server/config/options.h"
#include "server/log.h"
#include "server/repository/remote_models.h"

namespace reprise {

// `options` outlives the result.
RemoteModels::Bring ModelBringer(const Options& options, LogFunction log);

}  // namespace reprise

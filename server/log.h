// The daemon's log: text for people or a JSON object a line, on standard error.
#pragma once

#include <memory>

#include "server/config/options.h"

namespace spdlog {
class logger;
}

namespace reprise {

// It writes lines of every level: LogSwitch says which there are. Threads: a logger's methods from
// any.
std::shared_ptr<spdlog::logger> MakeLogger(LogFormat format);

}  // namespace reprise

// A batch on a stream: its parts go through one replay, and each of them is finished.
#pragma once

#include "runtime/base/clock.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/replay/stream.h"
#include "server/requests/part.h"

namespace reprise {

// Finishes each part of the batch once, whatever happens: with its answer, or where there is no
// memory to go on, with that error. Runs on the leader thread of `stream`.
void ExecuteBatch(RequestScheduler::Batch& batch, Engine& engine, const Clock& clock,
                  Stream& stream);

}  // namespace reprise

// How the machine's threads and memory are shared out, as flags say.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "server/config/options.h"

namespace reprise {

// Returns the most threads of one replay.
int ThreadsPerStream(const Options& options, int cores);

// Threads that capture.
inline int UrgentThreads(int cores) { return std::max(1, cores / 2); }
inline int BehindThreads(int cores) { return std::max(1, cores / 8); }
inline constexpr int kTuningThreads = 1;

// Returns the most that all arenas may take together. More than the machine or the container has
// would end the process: a quarter is left to weights and the rest.
int64_t AllArenaBytes(const Options& options);

// Returns the most that requests may take together where their data decide how much.
int64_t DataBytes(const Options& options);

// Returns the most that the arena of one stream, or of one thread that captures, may take.
size_t ArenaBytes(const Options& options, int cores);

}  // namespace reprise

// Profile: the time of each launch of a recipe, one thread.
//
// Ownership: borrows all. Threads: the frame's stream must be idle.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/device/launch.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

// Replays the recipe `repeats` times and returns the fastest time of each launch, in nanoseconds.
std::vector<int64_t> ProfileLaunches(const Recipe& recipe, const Frame& frame, int repeats,
                                     const Clock& clock);

// A table for people: launch, kernel, shapes, time, share of the replay, GF/s and GB/s.
std::string ProfileTable(const Recipe& recipe, const std::vector<int64_t>& launch_ns);

}  // namespace reprise

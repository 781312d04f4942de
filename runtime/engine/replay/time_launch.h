// The time of one launch by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/clock.h"
#include "runtime/device/launch.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

// Runs one launch on this thread, with its operands as they are; returns the nanoseconds that it
// took.
inline int64_t TimeLaunch(const Recipe& recipe, const Frame& frame, int index, const Clock& clock) {
  const Launch& launch = recipe.launches[static_cast<size_t>(index)];
  void* operands[kMaxOperands];
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    operands[i] = Resolve(launch.operands[i], frame);
  }
  const LaunchArgs args = {.operands = operands,
                           .params = launch.params.get(),
                           .frame = &frame,
                           .launch = index,
                           .part = 0,
                           .parts = 1};
  const int64_t start = clock.NowNs();
  RunWhole(launch, args);
  return clock.NowNs() - start;
}

}  // namespace reprise

// Profile: the time of each launch of a recipe, next to the time at the roofline of the machine:
// the longer of computing at the best rate and of moving its bytes at the best bandwidth.
//
// Ownership: ProfileRecipe and RunLaunch borrow all. Threads: the frame's stream must be idle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/device/roofline.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

// A recipe and a frame that holds a request: the input for running its launches one by one.
struct FilledFrame {
  std::shared_ptr<const Recipe> recipe;
  std::shared_ptr<const ParameterTable> parameters;  // the frame points to it
  std::unique_ptr<FirstDataError> errors;            // the frame reports to it
  Frame frame;                                       // belongs to a stream, until that makes
                                                     // another
};

struct RecipeProfile {
  std::shared_ptr<const Recipe> recipe;
  std::vector<int64_t> launch_ns;  // medians, one thread
  int64_t replay_ns = 0;           // median of whole replays, in which nothing else was timed
};

// Replays the recipe `repeats` times with a clock around each launch, and `repeats` times without.
RecipeProfile ProfileRecipe(std::shared_ptr<const Recipe> recipe, const Frame& frame,
                            const std::function<void()>& replay, int repeats, const Clock& clock);

// One launch by itself.
struct LaunchRun {
  std::vector<int64_t> ns;  // one per run, on one thread
  // The bytes that the launch wrote, by its output operands. An omitted output has none.
  std::vector<std::string> outputs;
};

// Runs the launches before number `launch` once, so that its operands are the same as in a replay,
// then the launch itself `repeats` times. Every run begins with the same operands, also where the
// launch overwrites one of them. OUT_OF_RANGE where the recipe has no such launch.
absl::StatusOr<LaunchRun> RunLaunch(const Recipe& recipe, const Frame& frame, int launch,
                                    int repeats, const Clock& clock);

// Returns the time of all launches at the roofline, in nanoseconds.
double FloorNs(const Recipe& recipe, const Roofline& roofline);
// The bytes that the bandwidths of a Roofline are to be measured at.
struct RecipeBytes {
  double weights = 0;  // the bytes of all launches
  double others = 0;   // the bytes of the launch that moves most of them
};
RecipeBytes BytesOf(const Recipe& recipe);

// Returns a table for people: launch, kernel, shapes, time, rate, share of the roofline, and a bar
// of which the solid part is the floor; then the kernels by the time that they lose.
std::string ProfileTable(const RecipeProfile& profile, const Roofline& roofline);

class JsonWriter;
// Writes the members "launches" and "replay_us" of an object that `json` is in.
void WriteProfile(const RecipeProfile& profile, const Roofline& roofline, JsonWriter& json);

}  // namespace reprise

// reprise replay: one launch of a recipe by itself.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/base/cpu/cpu_info.h"
#include "runtime/ops/kit/precision.h"

namespace reprise::cli {

struct ReplayOptions {
  std::string source;   // path of a model, or of a recipe in the folder of --recipe-cache (.rps)
  std::string bucket;   // a model's: see SizesOf
  std::string weights;  // path of a stored recipe's model; empty: weights are made up
  int launch = -1;      // -1: the launches are listed, none runs
  int repeats = 30;
  bool values = false;  // the outputs of the launch are printed
  bool json = false;
  Isa max_isa = kEveryIsa;
  Precision precision = Precision::kExact;  // a model's
  int64_t max_id = 1000;                    // the largest made-up id of a model's inputs
};

// Prints the launch: kernel, operands, time and, where they are asked for, its outputs. The
// launches before it run once, so that its operands hold the same values as in a replay.
// OUT_OF_RANGE where there is no such launch; errors of the model as Engine::Load says them, of
// the recipe as FillDetached.
absl::Status ReplayLaunch(const ReplayOptions& options);

}  // namespace reprise::cli

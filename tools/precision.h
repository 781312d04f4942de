// reprise check --precision: the nodes of a model that can round, and the effect of each
// choice on answers, and the choice that a goal leads to.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/base/cpu/cpu_info.h"
#include "runtime/ops/kit/precision_goal.h"

namespace reprise::cli {

struct PrecisionOptions {
  std::string path;   // names a model.onnx
  std::string rules;  // as `reprise.precision_ops`; empty: none
  PrecisionGoal goal = {.fast = true};
  std::string bucket;       // see SizesOf
  std::string inputs_file;  // as `reprise infer --inputs`; empty: made-up inputs
  Isa max_isa = kEveryIsa;
  int64_t max_id = 1000;
  bool json = false;
};

// Needs no server: answers the same request exactly and with every choice, and prints tables.
absl::Status RunPrecision(const PrecisionOptions& options);

}  // namespace reprise::cli

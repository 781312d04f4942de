// reprise bench --profile: one replay of a model, launch by launch, compared with the machine's
// roofline.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/base/cpu/cpu_info.h"
#include "runtime/ops/kit/precision.h"

namespace reprise::cli {

struct ProfileOptions {
  std::string path;    // names a model.onnx
  std::string bucket;  // see SizesOf
  Isa max_isa = kEveryIsa;
  Precision precision = Precision::kExact;
  int repeats = 30;
  int64_t max_id = 1000;
  bool json = false;
  std::string metrics_file;  // empty: none
};

// Needs no server: loads the model, measures the machine's peaks, and prints a table, or JSON.
absl::Status RunProfile(const ProfileOptions& options);

}  // namespace reprise::cli

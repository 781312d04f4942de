// reprise bench --profile: one replay of a model, launch by launch, beside the machine's roofline.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/cpu_info.h"
#include "runtime/engine/model.h"

namespace reprise::cli {

struct ProfileOptions {
  std::string path;    // of a model.onnx
  std::string bucket;  // see SizesOf
  Isa max_isa = kHighestIsa;
  Precision precision = Precision::kExact;
  int repeats = 30;
  int64_t max_id = 1000;
};

// Needs no server: loads the model, measures what the machine can do, and prints a table.
absl::Status RunProfile(const ProfileOptions& options);

// What is profiled.
struct ProfileSizes {
  AxisSizes sizes;      // by axis label
  bool packed = false;  // a packed replay that such a request fills
};

// What `text` names: a bucket of the model ("b1_s128"; of a packed model "t512", filled with rows
// as long as may be), or any sizes ("batch=1,sequence=100"). Empty text: the smallest padded
// bucket. INVALID_ARGUMENT says what there is.
absl::StatusOr<ProfileSizes> SizesOf(const Model& model, const std::string& text);

}  // namespace reprise::cli

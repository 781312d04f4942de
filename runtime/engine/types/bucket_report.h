// BucketReport: a report on a model's buckets, for people and for metrics.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/bucket/advisor.h"

namespace reprise {

// Says how better buckets that traffic shows are used.
enum class BucketMode { kOff, kSuggest, kApply };
const char* BucketModeName(BucketMode mode);  // "off", "suggest", "apply"

// A report on a model's buckets, for people and for metrics.
struct BucketReport {
  BucketMode mode = BucketMode::kOff;
  BucketAdvisor::State state;
  std::vector<std::string> axes;  // the axes of state.boundaries
  double actual_waste = 0;        // padding in the computed elements since the set is in force,
                                  // fading
  std::optional<BucketAdvice> suggestion;  // the last look's, not in force
  bool changing = false;                   // its recipes are being captured
};

}  // namespace reprise

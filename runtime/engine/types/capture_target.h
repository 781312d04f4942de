// CaptureTarget: the recipe that a capture makes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "runtime/engine/types/observer.h"
#include "runtime/recipe/key.h"

namespace reprise {

struct ModelVariant;

// The recipe that is to be captured.
struct CaptureTarget {
  RecipeKey key;
  std::string bucket;                           // label
  bool exact = false;                           // counts against reprise.max_exact
  bool bucketed = false;                        // some axis has a bucket: others may wait for it
  std::shared_ptr<const ModelVariant> variant;  // a variant of the model; null: the model itself
  // Absent: found when it is captured (evicted, first_request, new_shape).
  std::optional<CompileReason> reason;
  std::string section = {};  // the section of a model that is cut, for people
  // Asked between the steps of the capture, from several threads: an error ends it, and is its
  // result. Null: it goes on to its end.
  std::function<absl::Status()> go_on = {};
};

}  // namespace reprise

// WarmupSizes: the exact sizes that a warm-up asks for, and the meaning of "all" where some axis
// has no buckets.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bucket/shape_recorder.h"
#include "runtime/engine/engine.h"
#include "server/config/model_settings.h"
#include "server/repository/signature.h"

namespace reprise {

// Returns the bindings of sizes that name every axis of `model`, as Engine::CaptureAhead takes
// them: of a packed model the tokens that hold such a request. An axis goes by its label, or by
// the name that the file has for it. INVALID_ARGUMENT names an axis that is missing, or given
// twice, or that the model does not have, and models whose recipes no sizes name.
absl::StatusOr<std::vector<AxisSizes>> BindingsOfSizes(const Model& model,
                                                       const std::vector<AxisSizes>& sizes);

// Returns the bindings that requests of these sizes need, alone and where some of them share a
// replay: buckets of as many rows, or packed tokens, as their replays may hold. Errors are as
// above.
absl::StatusOr<std::vector<AxisSizes>> BindingsOfRequests(const Model& model,
                                                          const std::vector<AxisSizes>& requests);

// The bindings that a warm-up of everything captures, and its warnings.
struct WarmupOfAll {
  std::vector<AxisSizes> bindings;
  std::vector<std::string> notes;
};
// Returns all buckets; along an axis that may not be padded, the sizes of requests (`seen`, null
// where none came yet), the most frequent first. INVALID_ARGUMENT where these are too many.
absl::StatusOr<WarmupOfAll> EverythingOf(const Model& model, const ShapeTable* seen);

// Runs the part of `model` after its cuts at `sizes` with made-up values on `stream`, so that its
// sections are captured for the sizes that these find: OK where the model has no cuts.
absl::Status Rehearse(Engine& engine, const Model& model, const AxisSizes& sizes, Stream& stream);

// Returns the warm-up of `settings` with the sizes of the samples in its `model_warmup`, as Triton
// has them; their data do not count. INVALID_ARGUMENT names the sample, and the input and both
// values where it does not fit the model.
absl::StatusOr<WarmupSettings> WarmupOfSamples(const ModelSettings& settings, const Model& model,
                                               const Signature& signature);

}  // namespace reprise

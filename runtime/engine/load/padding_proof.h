// PaddingProof: measures along which axes of a model requests may be padded, and how far.
//
// `Measure` fills in the certificates while a model is loaded. Where the model's options say so it
// stops at small sizes, which takes a few short replays, and `Confirm` does the long ones later, on
// whatever thread the caller has to spare.
//
// Ownership: borrows the context; nothing is kept. Threads: Measure before the model is shared;
// Confirm once, from any thread, while the model serves.
// Errors: no memory for a stream.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/certify/probe.h"
#include "runtime/engine/load/axis_measurement.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/padding_prober.h"
#include "runtime/engine/load/prober_lanes.h"
#include "runtime/engine/model/model.h"

namespace reprise {

// The part of the proof that Measure leaves for Confirm.
struct PendingProof {
  struct Axis {
    size_t position = 0;  // index into Model::axes()
    AxisMeasurement::Rest rest;
  };
  std::vector<InputRange> ranges;
  std::vector<Axis> axes;
};

class PaddingProof {
 public:
  explicit PaddingProof(const LoaderContext& context) : context_(context) {}

  // Fills in the certificates of the axes that have no refusal yet, and packs the model where that
  // holds; on as many threads as there are cores. `buckets` by axis. `fit_shapes` fits the shapes
  // of the outputs, and may refuse axes; it is called once, on any thread.
  absl::Status Measure(Model& model, const std::vector<std::vector<int64_t>>& buckets,
                       const std::function<absl::Status()>& fit_shapes) const;

  // Does what Measure has left, on the caller's thread alone: the certificates of the axes that
  // were left, by position.
  absl::StatusOr<std::map<size_t, AxisCertificate>> Confirm(const Model& model) const;

  // Looks at one more size of a certified axis, larger than what was measured, on the caller's
  // thread alone. FAILED_PRECONDITION saying why where padding to it could change an answer.
  absl::Status Extend(const Model& model, size_t position, int64_t size) const;

 private:
  // Whether the packed model takes masks with which nothing may be padded.
  absl::Status MeasureAnyMask(Model& model, ProberLanes& lanes,
                              absl::Span<const InputRange> ranges) const;

  LoaderContext context_;
};

// Marks what an axis lost its certificate for.
void Refuse(ModelAxis& axis, std::string reason);

}  // namespace reprise

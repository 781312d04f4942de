// Scatter: the answers of a batch, cut out of the outputs of its replay.
//
// Ownership: borrows everything for the length of one call of BatchRun. Threads: the stream's
// caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/engine/batch/batch_plan.h"
#include "runtime/engine/packing/packed_frame.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/types/request.h"
#include "runtime/recipe/recipe.h"
#include "runtime/verify/output_shapes.h"

namespace reprise {

class Scatter {
 public:
  struct Batch {
    const BatchPlan& plan;
    const Recipe& recipe;
    const BatchTarget& target;  // the recipe's, which may be larger than the plan's
    absl::Span<const Request* const> requests;
    absl::Span<const int64_t> first_row;  // where the rows of each request begin
    absl::Span<const PackedPart> packed;  // one per request of a packed plan
    bool all_wanted = false;              // a request's choice is ignored: nodes after a cut may
                                          // need any
    Stream& stream;
  };
  explicit Scatter(const Batch& batch) : batch_(batch), model_(batch.plan.model()) {}

  // Lets kernels write the answer to a lone request to its final place, as far as it is the
  // beginning of the recipe's output.
  void PlaceOutputs(Response& response) const;
  // Copies the outputs that were not placed out of the frame for requests [first, last), and checks
  // all of it.
  void Copy(const Frame& frame, std::vector<Response>& responses, size_t first, size_t last) const;

 private:
  // The part of a slot that is one request's answer.
  struct Block {
    Shape shape;
    Shape offset;  // empty in a packed replay
  };
  bool IsWanted(const Request& request, size_t position) const;
  Block BlockOf(size_t position, size_t i) const;
  // Returns the shape that output `position` has for request `i`.
  Shape ShapeOf(size_t position, size_t i) const;
  // Returns the same where sizes are padded, or shared by several requests; its slot's shape is
  // `slot`.
  Shape TrueShape(size_t position, size_t i, const Shape& slot) const;
  // Returns whether the recipe has the sizes of the one request, so that its slots are the answer.
  bool IsUnpadded() const;
  // Returns whether the dim moves with an axis of whose step the request's size is no multiple, so
  // that it is not known.
  bool IsOffStep(const AffineDim& dim, const std::vector<int64_t>& sizes) const;
  // Returns, as the last check, INTERNAL where `block`, which is to be cut out of a slot for
  // request `i`, does not have the form that the model's other sizes promise at the sizes of the
  // request, or does not lie in the slot.
  absl::Status CheckForm(size_t position, size_t i, const Block& block) const;
  absl::Status CheckBytes(size_t position, const OutputTensor& output) const;
  absl::Status CopyOne(const Frame& frame, size_t position, size_t i, OutputTensor& output) const;

  const Batch batch_;
  const Model& model_;
};

}  // namespace reprise

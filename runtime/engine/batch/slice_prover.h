// SliceProver: measures, while a model serves, whether padding holds in a slice of its sizes
// (size_slices.h) that no request had before, and tells the requests that wait for it.
//
// Ownership: borrows the options; the object outlives the jobs of options.captures. Threads: all
// methods from any.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "runtime/engine/capture/capture_pool.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/types/capture_ticket.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/engine/types/request.h"
#include "runtime/verify/size_slices.h"

namespace reprise {

class SliceProver {
 public:
  explicit SliceProver(const EngineOptions& options) : options_(options) {}

  // Looks at the slice of `shape` on a capture thread, on this one where there is none; `ready` is
  // called when it is known. Null, and `ready` is not called, where it is known by now or no thread
  // takes it.
  std::shared_ptr<CaptureTicket> Await(const Model& model, const RequestShape& shape,
                                       CaptureUrgency urgency,
                                       std::function<void(absl::Status)> ready) const;

 private:
  void Look(const Model& model, const SizeSlices::Slice& slice) const;

  const EngineOptions& options_;
};

}  // namespace reprise

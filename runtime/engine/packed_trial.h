// PackedTrial: the packed form of a model, tried while its axes are still measured.
//
// Ownership: borrows context, model and buckets. Threads: Run and GiveUp from any; Take after all
// rounds.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/loader_context.h"
#include "runtime/engine/packing.h"
#include "runtime/engine/packing_check.h"
#include "runtime/engine/padding_prober.h"

namespace reprise {

class PackedTrial {
 public:
  PackedTrial(const LoaderContext& context, const Model& model,
              const std::vector<std::vector<int64_t>>& buckets, std::vector<InputRange> ranges);

  // Rounds to run; in any order, on any threads.
  size_t rounds() const;
  // The model is padded whatever comes out: what has not begun is left out.
  void GiveUp() { given_up_ = true; }
  // What comes out is told by Take; OK always.
  absl::Status Run(size_t round, const PaddingProber& prober);

  // The packed form, or why there is none.
  absl::StatusOr<std::unique_ptr<Packing>> Take();

 private:
  void Begin() REQUIRES(mutex_);

  // Constant after construction.
  const LoaderContext& context_;
  const Model& model_;
  const std::vector<std::vector<int64_t>>& buckets_;
  const std::vector<InputRange> ranges_;
  // Self-synchronised.
  std::atomic<bool> given_up_{false};
  // Guarded.
  Mutex mutex_;
  bool tried_ GUARDED_BY(mutex_) = false;
  absl::Status wrong_ GUARDED_BY(mutex_);
  // Set by Begin, and constant from then on until Take.
  absl::StatusOr<std::unique_ptr<Packing>> packing_ = absl::UnknownError("not tried");
  std::optional<PackingCheck> check_;
};

}  // namespace reprise

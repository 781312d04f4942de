// PackedTrial: the packed form of a model, tried while its axes are still measured.
//
// Ownership: borrows context, model and buckets. Threads: Run from one; GiveUp from any; Take after
// Run.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/padding_prober.h"
#include "runtime/engine/packing/packing.h"

namespace reprise {

class PackedTrial {
 public:
  PackedTrial(const LoaderContext& context, const Model& model,
              const std::vector<std::vector<int64_t>>& buckets, std::vector<InputRange> ranges);

  // Whether there is anything to try.
  bool wanted() const;
  // The model is padded whatever comes out: a trial that has not begun is left out.
  void GiveUp() { given_up_ = true; }
  // The outcome is told by Take; Run itself returns OK always.
  absl::Status Run(const PaddingProber& prober);

  // The packed form, or why there is none.
  absl::StatusOr<std::unique_ptr<Packing>> Take() { return std::move(packing_); }

 private:
  // Constant after construction.
  const LoaderContext& context_;
  const Model& model_;
  const std::vector<std::vector<int64_t>>& buckets_;
  const std::vector<InputRange> ranges_;
  // Self-synchronised.
  std::atomic<bool> given_up_{false};
  // Belongs to whoever runs it, and then takes it.
  absl::StatusOr<std::unique_ptr<Packing>> packing_ = absl::UnknownError("not tried");
};

}  // namespace reprise

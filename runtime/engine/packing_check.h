// PackingCheck: a packed model against itself unpadded, before it serves anybody.
//
// Requests of several lengths, with masks of several kinds, run together in one packed replay and
// each alone at its own shape. The pass that packs knows rules; this knows whether they were right.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/certify/draw.h"
#include "runtime/certify/probe.h"
#include "runtime/device/device.h"
#include "runtime/engine/packing.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/engine/stream.h"

namespace reprise {

// Threads: Run from any, for another round each.
class PackingCheck {
 public:
  struct Options {
    ParameterStore* parameters = nullptr;
    const Device* device = nullptr;
    const Clock* clock = nullptr;
  };
  // What one thread runs with.
  struct Lane {
    const Drawer* drawer = nullptr;
    std::string sequence;  // symbol of the axis
    std::string batch;     // symbol; empty for a model without
    absl::Span<const std::string> output_names;
    const ProbeRunner* exact = nullptr;  // on the same stream
    double tolerance = 1e-5;             // of the largest |element| of the unpadded output
    Stream* stream = nullptr;
  };
  static constexpr size_t kRounds = 2;

  // Borrows `packing` and what the options point to.
  PackingCheck(const Packing& packing, const Options& options)
      : packing_(packing), options_(options) {}
  ~PackingCheck();
  PackingCheck(const PackingCheck&) = delete;
  PackingCheck& operator=(const PackingCheck&) = delete;

  // FAILED_PRECONDITION naming output and length where an answer differs; what the runs return.
  absl::Status Run(size_t round, const Lane& lane);

 private:
  // The packed recipe of all rounds, compiled by the first that needs it.
  absl::StatusOr<std::shared_ptr<const Recipe>> PackedRecipe();

  const Packing& packing_;
  const Options options_;
  Mutex mutex_;
  std::shared_ptr<const Recipe> recipe_ GUARDED_BY(mutex_);
};

}  // namespace reprise

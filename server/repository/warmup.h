// Warmup: captures the recipes of a model before requests need them.
//
// The largest buckets come first, each of which serves all smaller ones: once they are there, no
// request of the model waits for a capture. The rest follows during the traffic, in the order
// given. A limit of time or memory ends it early, with a reason.
//
// Ownership: shared; captures under way keep it alive. Threads: all methods from any.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/engine.h"
#include "server/config/model_settings.h"
#include "server/repository/server_state.h"
#include "server/repository/warmup_progress.h"

namespace reprise {

class Warmup : public std::enable_shared_from_this<Warmup> {
 public:
  // `progress` is updated at every step. The engine and `state` outlive the object; where that
  // says that the server stops, no more is captured.
  Warmup(Engine& engine, std::shared_ptr<const Model> model, const WarmupSettings& settings,
         std::shared_ptr<WarmupProgress> progress, const ServerState& state);

  // Captures `bindings` in the background, after those that are under way. The limit of time counts
  // from this call. Those that the model has had are left out.
  void Request(const std::vector<AxisSizes>& bindings);
  // Captures `usual`, then `bindings`, and waits until the former and the largest of the latter are
  // ready, or all of them where the settings say so, or until a limit ends it. `used`: bindings
  // that an earlier start used, ready as well.
  void RunUntilReady(const std::vector<AxisSizes>& usual, const std::vector<AxisSizes>& bindings,
                     const std::vector<AxisSizes>& used);

 private:
  // Adds bindings that are captured one after another; those that were added before are left out.
  void Add(const std::vector<AxisSizes>& bindings, CaptureUrgency urgency);
  void Next(CaptureUrgency urgency);
  // Goes on after the cuts: the recipe before them is there, or is not.
  void Behind(const AxisSizes& sizes, CaptureUrgency urgency, const absl::Status& status);
  void Done(const AxisSizes& sizes, CaptureUrgency urgency, const absl::Status& status);
  // Returns why no more should be captured; empty if more may.
  std::string Limit() const;
  int64_t ElapsedNs() const EXCLUDES(mutex_);

  // Constant after construction.
  Engine& engine_;
  const std::shared_ptr<const Model> model_;
  const WarmupSettings settings_;
  const std::shared_ptr<WarmupProgress> progress_;
  const ServerState& state_;
  // Guarded.
  mutable Mutex mutex_;
  CondVar finished_;
  int64_t started_ns_ GUARDED_BY(mutex_);
  std::set<AxisSizes> known_ GUARDED_BY(mutex_);
  std::deque<AxisSizes> urgent_ GUARDED_BY(mutex_);
  std::deque<AxisSizes> behind_ GUARDED_BY(mutex_);
  bool urgent_runs_ GUARDED_BY(mutex_) = false;  // one of each kind at a time
  bool behind_runs_ GUARDED_BY(mutex_) = false;
};

// Anything is to be captured before the model is ready.
bool WantsWarmup(const WarmupSettings& settings);

// Returns the bindings that config.pbtxt names, most valuable first. Empty, with a note in the log,
// where an axis without a certificate has no sizes to name. `folder`: the model's, for the lengths
// file. Errors: INVALID_ARGUMENT for a bucket that the model does not have or a line that is no
// length, NOT_FOUND for the file.
absl::StatusOr<std::vector<AxisSizes>> WarmupBindings(const Model& model,
                                                      const WarmupSettings& settings,
                                                      const std::string& folder);

// Returns the binding of the usual sizes of the ranges of axes (reprise.range.*), with one row
// where none is given; empty where no axis has one. INVALID_ARGUMENT names an axis whose size is
// missing.
absl::StatusOr<std::vector<AxisSizes>> UsualBinding(const Model& model,
                                                    const WarmupSettings& settings);

// Returns the bindings of bucket labels; all of the model's where `labels` is empty.
// INVALID_ARGUMENT names a label that the model does not have, or how many sizes each axis has
// where all are too many.
absl::StatusOr<std::vector<AxisSizes>> BindingsOf(const Model& model,
                                                  const std::vector<std::string>& labels);

// Returns the bindings that no other one covers along every axis.
std::vector<AxisSizes> LargestOf(const std::vector<AxisSizes>& bindings);

}  // namespace reprise

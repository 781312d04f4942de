// GenerationLoop: the threads that step a model's generators, one for each of its lanes.
//
// A model has one lane, or as many as it has ranks in a pipeline (GeneratorOptions::lane): a
// request goes to the lane with the fewest sequences. A thread steps while its lane has something
// to do and sleeps otherwise. When the last user lets go the threads end, and sequences that still
// run end with UNAVAILABLE.
//
// Threads: all methods from any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "runtime/generate/generator.h"

namespace reprise {

class GenerationLoop {
 public:
  // Told after steps, and when nothing is left to do: the sums over all lanes. One call at a time.
  using OnStats = std::function<void(const GeneratorStats& stats)>;

  // `lanes`: one or more, of one model.
  GenerationLoop(std::vector<std::unique_ptr<Generator>> lanes, OnStats on_stats);
  ~GenerationLoop();

  absl::StatusOr<std::shared_ptr<Generation>> Submit(GenerationRequest request)
      EXCLUDES(submit_mutex_);
  // Makes the threads look again: a client has taken events, or cancelled.
  void Wake();
  // OK while tokens can be made; UNAVAILABLE naming a rank that is missing.
  absl::Status state() const;
  // Returns the sums over all lanes.
  GeneratorStats Stats() const;
  // Returns whether no sequence runs or waits.
  bool idle() const;
  // Sequences that still run end with UNAVAILABLE, soon; requests are refused from then on.
  void Stop();
  // Ends the sequences, and waits until no more callbacks run: their objects may be destroyed then.
  void Finish();
  // Returns the first lane: all have the same model, options and recipes.
  const Generator& generator() const { return *shared_->lanes[0]; }

 private:
  struct Shared {
    std::vector<std::unique_ptr<Generator>> lanes;
    OnStats on_stats;
    std::atomic<bool> stop{false};
    Mutex stats_mutex;  // held during on_stats

    GeneratorStats Stats() const;
    void Tell() EXCLUDES(stats_mutex);
  };
  static void Run(const std::shared_ptr<Shared>& shared, Generator& generator);

  const std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;  // one a lane
  Mutex submit_mutex_;                // held while a lane is chosen, and counts the request
};

}  // namespace reprise

// GenerationLoop: the thread that steps a model's generator.
//
// It steps while there is something to do and sleeps otherwise. When the last user lets go the
// thread ends, and sequences that still run end with UNAVAILABLE.
//
// Threads: all methods from any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "runtime/generate/generator.h"

namespace reprise {

class GenerationLoop {
 public:
  // Told after steps, and when nothing is left to do.
  using OnStats = std::function<void(const GeneratorStats& stats)>;

  GenerationLoop(std::unique_ptr<Generator> generator, OnStats on_stats);
  ~GenerationLoop();

  absl::StatusOr<std::shared_ptr<Generation>> Submit(GenerationRequest request);
  // Makes the loop look again: a client has taken events, or cancelled.
  void Wake();
  // Returns whether no sequence runs or waits.
  bool idle() const;
  // Sequences that still run end with UNAVAILABLE, soon; requests are refused from then on.
  void Stop();
  // Ends the sequences, and waits until no more callbacks run: their objects may be destroyed then.
  void Finish();
  const Generator& generator() const { return *shared_->generator; }

 private:
  struct Shared {
    std::unique_ptr<Generator> generator;
    OnStats on_stats;
    std::atomic<bool> stop{false};
  };
  static void Run(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace reprise

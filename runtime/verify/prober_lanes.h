// ProberLanes: the probers of the threads that share what there is to measure of a model.
//
// Ownership: borrows subject, graph and runners. Threads: one caller at a time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/verify/padding_prober.h"

namespace reprise {

class ProberLanes {
 public:
  // Whether the probers run the model, or only read its graph.
  enum class Use { kRun, kRead };

  ProberLanes(const ProofSubject& subject, const Graph& graph, ProofRunners& runners,
              Use use = Use::kRun)
      : subject_(subject),
        graph_(graph),
        runners_(runners),
        use_(use),
        readings_(graph, subject.axes) {}

  const SizeReadings& readings() const { return readings_; }

  // Calls `work` for each of [0, count), on as many threads as there are cores. Returns the first
  // error. RESOURCE_EXHAUSTED: no memory for a runner.
  absl::Status ForEach(size_t count,
                       const std::function<absl::Status(size_t, const PaddingProber&)>& work);

 private:
  struct Lane {
    std::unique_ptr<ProofRunner> runner;  // null where nothing is run
    std::unique_ptr<const PaddingProber> prober;
  };
  absl::Status AddLane();

  const ProofSubject& subject_;
  const Graph& graph_;
  ProofRunners& runners_;
  const Use use_;
  const SizeReadings readings_;
  std::vector<Lane> lanes_;
};

}  // namespace reprise

// EngineMetrics: an observer that counts the engine's work, for programs that have no server. It
// passes all calls on to another observer.
//
// A replay is counted after it ends, under a lock of its model that is held for a few additions.
//
// Threads: all methods from any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/engine/metrics/model_counts.h"
#include "runtime/engine/types/observer.h"

namespace reprise {

class EngineMetrics final : public Observer {
 public:
  // `next` outlives the object and all that it makes.
  explicit EngineMetrics(Observer& next) : next_(next) {}

  std::unique_ptr<ModelObserver> ForModel(const ModelObserverSpec& spec) override EXCLUDES(mutex_);
  // Returns the counts of every model version so far, in the order of their names.
  std::vector<ModelCounts> Counts() const EXCLUDES(mutex_);

  // The counts of one version, which stay when it is unloaded.
  struct Tally {
    mutable Mutex mutex;
    ModelCounts counts GUARDED_BY(mutex);
  };

 private:
  Observer& next_;
  mutable Mutex mutex_;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<Tally>> models_ GUARDED_BY(mutex_);
};

}  // namespace reprise

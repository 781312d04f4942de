// Observers that ignore all events.
#pragma once

#include <memory>

#include "runtime/engine/types/observer.h"

namespace reprise {

class SilentModelObserver : public ModelObserver {
 public:
  void On(const ModelEvent&) override {}
};

class SilentObserver final : public Observer {
 public:
  std::unique_ptr<ModelObserver> ForModel(const ModelObserverSpec&) override {
    return std::make_unique<SilentModelObserver>();
  }
};

}  // namespace reprise

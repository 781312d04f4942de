// MetricsObserver: counts what the engine does. Series are looked up once a model.
#pragma once

#include <memory>

#include "runtime/engine/types/observer.h"
#include "server/metrics/catalogue.h"

namespace reprise {

// `catalogue` must outlive the observer and all that it makes.
class MetricsObserver final : public Observer {
 public:
  explicit MetricsObserver(Catalogue& catalogue) : catalogue_(catalogue) {}
  std::unique_ptr<ModelObserver> ForModel(const ModelObserverSpec& spec) override;

 private:
  Catalogue& catalogue_;
};

}  // namespace reprise

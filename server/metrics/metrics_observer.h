// MetricsObserver: counts the engine's events. Series are looked up once a model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/engine/types/observer.h"
#include "server/metrics/catalogue.h"

namespace reprise {

// `catalogue` must outlive the observer and all that it makes.
class MetricsObserver final : public Observer {
 public:
  // `on_replay`: called for every replay with the model's name, on the thread that ran it;
  // may be null.
  using OnReplay = std::function<void(const std::string& model, const ReplayRecord& record)>;
  explicit MetricsObserver(Catalogue& catalogue, OnReplay on_replay = nullptr)
      : catalogue_(catalogue), on_replay_(std::move(on_replay)) {}
  std::unique_ptr<ModelObserver> ForModel(const ModelObserverSpec& spec) override;

 private:
  Catalogue& catalogue_;
  const OnReplay on_replay_;
};

}  // namespace reprise

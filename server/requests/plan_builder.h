// PlanBuilder: the engine's BatchPlan as the queue sees it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/engine/engine.h"
#include "server/requests/part.h"

namespace reprise {

class PlanBuilder {
 public:
  PlanBuilder(Engine& engine, std::shared_ptr<const Model> model)
      : engine_(engine), model_(std::move(model)), plan_(*model_) {}

  // See BatchBuilder.
  bool TryAdd(const Part& part);
  std::vector<size_t> Order(absl::Span<const Part* const> waiting) const;
  bool full() const { return plan_.full() || carried_tokens_ >= kCarriedTokens; }
  bool Start(std::function<void(absl::Status)> ready);
  const BatchPlan& plan() const { return plan_; }

  // Computes all parts; null: the plan says how the engine does.
  const CarriedSteps* carried() const { return carried_; }

 private:
  // A batch of those that carry their caches has this many new tokens, or one part.
  static constexpr int64_t kCarriedTokens = 64;

  bool TryAddCarried(const Part& part);

  Engine& engine_;
  const std::shared_ptr<const Model> model_;
  BatchPlan plan_;
  std::vector<const Part*> parts_;  // those in the plan; the queue holds them
  const CarriedSteps* carried_ = nullptr;
  int64_t carried_tokens_ = 0;
};

}  // namespace reprise

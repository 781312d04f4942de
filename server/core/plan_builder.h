// PlanBuilder: the engine's BatchPlan as the queue sees it.
#pragma once

#include <memory>

#include "runtime/engine/model.h"
#include "server/batching/model_queue.h"

namespace reprise {

class PlanBuilder final : public BatchBuilder {
 public:
  explicit PlanBuilder(std::shared_ptr<const Model> model)
      : model_(std::move(model)), plan_(*model_) {}

  // The items of a model's queue are Parts.
  bool TryAdd(const WorkItem& item) override;
  bool full() const override { return plan_.full(); }
  const BatchPlan& plan() const { return plan_; }

 private:
  const std::shared_ptr<const Model> model_;
  BatchPlan plan_;
};

}  // namespace reprise

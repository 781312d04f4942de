// PlanBuilder: the engine's BatchPlan as the queue sees it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/engine/engine.h"
#include "server/batching/model_queue.h"

namespace reprise {

class Part;

class PlanBuilder final : public BatchBuilder {
 public:
  PlanBuilder(Engine& engine, std::shared_ptr<const Model> model)
      : engine_(engine), model_(std::move(model)), plan_(*model_) {}

  // The items of a model's queue are Parts.
  bool TryAdd(const WorkItem& item) override;
  std::vector<size_t> Order(absl::Span<const WorkItem* const> waiting) const override;
  bool full() const override { return plan_.full(); }
  bool Start(std::function<void(absl::Status)> ready) override;
  const BatchPlan& plan() const { return plan_; }

 private:
  Engine& engine_;
  const std::shared_ptr<const Model> model_;
  BatchPlan plan_;
  std::vector<const Part*> parts_;  // those in the plan; the queue holds them
};

}  // namespace reprise

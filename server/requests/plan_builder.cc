#include "server/requests/plan_builder.h"

#include <optional>

#include "server/requests/call.h"

namespace reprise {

bool PlanBuilder::TryAdd(const WorkItem& item) {
  const auto& part = static_cast<const Part&>(item);
  const std::optional<RequestShape> changed = model_->MeasureAgain(part.measured);
  // Behind the first one come those that Order named.
  const bool chosen = !parts_.empty();
  if (!plan_.TryAdd(changed.has_value() ? *changed : part.measured, part.waited_for, chosen)) {
    return false;
  }
  parts_.push_back(&part);
  return true;
}

std::vector<size_t> PlanBuilder::Order(absl::Span<const WorkItem* const> waiting) const {
  std::vector<const RequestShape*> shapes;
  for (const WorkItem* item : waiting) {
    shapes.push_back(&static_cast<const Part*>(item)->measured);
  }
  return plan_.Choose(shapes);
}

bool PlanBuilder::Start(std::function<void(absl::Status)> ready) {
  const std::shared_ptr<CaptureTicket> ticket = engine_.Prepare(plan_, std::move(ready));
  if (ticket == nullptr) return true;
  for (const Part* part : parts_) part->waited_for = ticket;
  return false;
}

}  // namespace reprise

#include "server/requests/plan_builder.h"

#include <optional>

namespace reprise {

bool PlanBuilder::TryAdd(const Part& part) {
  const std::optional<RequestShape> changed = model_->MeasureAgain(part.measured);
  // Behind the first one come those that Order named.
  const bool chosen = !parts_.empty();
  if (!plan_.TryAdd(changed.has_value() ? *changed : part.measured, part.waited_for, chosen)) {
    return false;
  }
  parts_.push_back(&part);
  return true;
}

std::vector<size_t> PlanBuilder::Order(absl::Span<const Part* const> waiting) const {
  std::vector<const RequestShape*> shapes;
  for (const Part* part : waiting) shapes.push_back(&part->measured);
  return plan_.Choose(shapes);
}

bool PlanBuilder::Start(std::function<void(absl::Status)> ready) {
  const std::shared_ptr<CaptureTicket> ticket = engine_.Prepare(plan_, std::move(ready));
  if (ticket == nullptr) return true;
  for (const Part* part : parts_) part->waited_for = ticket;
  return false;
}

}  // namespace reprise

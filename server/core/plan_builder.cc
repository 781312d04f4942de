#include "server/core/plan_builder.h"

#include "server/core/call.h"

namespace reprise {

bool PlanBuilder::TryAdd(const WorkItem& item) {
  const auto& part = static_cast<const Part&>(item);
  if (!plan_.TryAdd(part.measured, part.waited_for)) return false;
  parts_.push_back(&part);
  return true;
}

bool PlanBuilder::Start(std::function<void(absl::Status)> ready) {
  const std::shared_ptr<CaptureTicket> ticket = engine_.Prepare(plan_, std::move(ready));
  if (ticket == nullptr) return true;
  for (const Part* part : parts_) part->waited_for = ticket;
  return false;
}

}  // namespace reprise

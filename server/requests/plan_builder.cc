#include "server/requests/plan_builder.h"

#include <optional>

namespace reprise {

bool PlanBuilder::TryAddCarried(const Part& part) {
  const int64_t tokens = part.carried->TokensOf(part.request);
  if (!parts_.empty() && carried_tokens_ + tokens > kCarriedTokens) return false;
  carried_ = part.carried;
  carried_tokens_ += tokens;
  parts_.push_back(&part);
  return true;
}

bool PlanBuilder::TryAdd(const Part& part) {
  if (!parts_.empty() && part.carried != carried_) return false;
  if (part.carried != nullptr) return TryAddCarried(part);
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
  // Those that are computed as the first one is.
  std::vector<size_t> fitting;
  std::vector<const RequestShape*> shapes;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i]->carried != carried_) continue;
    fitting.push_back(i);
    shapes.push_back(&waiting[i]->measured);
  }
  if (carried_ != nullptr) return fitting;
  std::vector<size_t> order = plan_.Choose(shapes);
  for (size_t& one : order) one = fitting[one];
  return order;
}

bool PlanBuilder::Start(std::function<void(absl::Status)> ready) {
  if (carried_ != nullptr) return true;
  const std::shared_ptr<CaptureTicket> ticket = engine_.Prepare(plan_, std::move(ready));
  if (ticket == nullptr) return true;
  for (const Part* part : parts_) part->waited_for = ticket;
  return false;
}

}  // namespace reprise

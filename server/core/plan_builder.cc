#include "server/core/plan_builder.h"

#include "server/core/call.h"

namespace reprise {

bool PlanBuilder::TryAdd(const WorkItem& item) {
  return plan_.TryAdd(static_cast<const Part&>(item).measured);
}

}  // namespace reprise

// The routes of shared memory over HTTP:
//
//   GET  /v2/systemsharedmemory[/region/{region}]/status      [{"name", "key", "offset",
//   "byte_size"}] POST /v2/systemsharedmemory/region/{region}/register      {"key", "offset",
//   "byte_size"} POST /v2/systemsharedmemory[/region/{region}]/unregister
//
// Without regions, and for cudasharedmemory always, there is nothing to list or to forget, and
// nothing can be registered: clients ask for both at their start, whatever they do afterwards.
#pragma once

#include "runtime/engine/types/memory_budget.h"
#include "server/http/router.h"
#include "server/shared_memory/shared_regions.h"

namespace reprise {

// `regions` may be null; all outlive the router.
void AddRegionRoutes(SharedRegions* regions, MemoryBudget& parsing, Router& router);

}  // namespace reprise

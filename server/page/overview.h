// /v2/overview: the numbers that the live page shows, as JSON.
//
//   {"time_ms": ..., "server": {"version", "device", "state", "ready", "reason", "uptime_seconds"},
//    "models": [{"name", "version", "state", "reason", "warmup", "offers", "inputs", "outputs",
//                "axes"}],
//    "captures": [{"model", "version", "time_ms", "binding", "reason", "suggestion", ...}],
//    "metrics": {"reprise_requests_total": [{"labels": {...}, "value": 3}], ...}}
//
// Captures are the ones of the last hour, oldest first, as far as the engine remembers them; a
// metric is as in a scrape with every bound, and a histogram has "bounds", "counts" (cumulative),
// "sum" and "count". Counters are since start: two reads give rates.
#pragma once

#include <chrono>
#include <string>

#include "server/http/pages.h"
#include "server/hub/text_models.h"

namespace reprise {

struct OverviewContext {
  PageContext pages;
  const TextModels* texts = nullptr;
  std::chrono::system_clock::time_point started;
};

std::string OverviewJson(const OverviewContext& context);

}  // namespace reprise

// TraceContext: the place of a request in a trace, as W3C's headers `traceparent` and `tracestate`
// carry it (https://www.w3.org/TR/trace-context/).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace reprise {

inline constexpr char kTraceParent[] = "traceparent";
inline constexpr char kTraceState[] = "tracestate";

struct TraceContext {
  std::array<uint64_t, 2> trace = {};  // 128 bits, the high ones first; never all zero
  uint64_t span = 0;                   // the caller's; never zero
  bool sampled = false;                // the caller records the trace
  std::string state;                   // `tracestate`, as it came
};

// Reads both headers. Returns nullopt where `parent` is absent or not as the standard has it, which
// begins a trace of its own; a `state` that is too long to be passed on is left out.
std::optional<TraceContext> ReadTraceContext(absl::string_view parent, absl::string_view state);

// Returns "00-TRACE-SPAN-01" with `span` as the parent of later spans.
std::string TraceParentText(const TraceContext& context, uint64_t span);

// Returns 32 digits, as exporters and logs write it.
std::string TraceIdText(const std::array<uint64_t, 2>& trace);

}  // namespace reprise

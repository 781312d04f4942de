#include "server/resource_shares.h"

#include "runtime/base/address_space.h"
#include "runtime/base/cgroup.h"
#include "runtime/engine/replay/stream.h"

namespace reprise {

int ThreadsPerStream(const Options& options, int cores) {
  return options.threads_per_stream > 0 ? std::min(options.threads_per_stream, cores) : cores;
}

int64_t AllArenaBytes(const Options& options) {
  if (options.arena_memory_mb > 0) return options.arena_memory_mb << 20;
  return AvailableMemoryBytes() / 4 * 3;
}

int64_t DataBytes(const Options& options) {
  return options.data_memory_mb > 0 ? options.data_memory_mb << 20 : AvailableMemoryBytes() / 8;
}

size_t ArenaBytes(const Options& options, int cores) {
  const int streams = options.streams > 0 ? options.streams : cores;
  if (options.arena_memory_mb == 0) {
    // Where addresses are scarce, all streams together get at most half of them.
    const auto addresses = static_cast<size_t>(FreeAddressBytes()) / 2;
    return std::min({StreamOptions().max_arena_bytes, static_cast<size_t>(AllArenaBytes(options)),
                     addresses / static_cast<size_t>(std::max(streams, 4))});
  }
  const auto all = static_cast<size_t>(options.arena_memory_mb) << 20;
  return all / static_cast<size_t>(streams + UrgentThreads(cores) + BehindThreads(cores) +
                                   kTuningThreads);
}

}  // namespace reprise

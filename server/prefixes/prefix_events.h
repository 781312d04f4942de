// Events of pages as routers read them: a batch is the MessagePack of [seconds, [event, ...],
// nil], whose third member is the rank of one of several engines, an event ["BlockStored", [hash],
// hash of the page before or nil, [id, ...], positions],
// ["BlockRemoved", [hash]] or ["AllBlocksCleared"], as vLLM's publishers write them.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace reprise {

struct PrefixEvent {
  enum class Kind { kStored, kRemoved, kCleared };
  Kind kind = Kind::kCleared;
  uint64_t page = 0;         // the hash of its content, and of all pages before it
  uint64_t before = 0;       // the page that it builds on; 0: none
  std::vector<int64_t> ids;  // empty unless it is stored
};

// `seconds`: when, since 1970.
std::string EncodeBatch(double seconds, absl::Span<const PrefixEvent> events);

}  // namespace reprise

#include <algorithm>

#include "tests/fuzz/wire/feed.h"

namespace reprise {

Arrival ArrivalOf(unsigned char byte, size_t size) {
  constexpr size_t kMostParts = 16;  // each of them costs as much as a short input
  const size_t part = byte & 0x1f;
  return {.part_bytes = part == 0 ? SIZE_MAX : std::max(part, size / kMostParts),
          .server_leaves = (byte & 0x20) != 0,
          .client_vanishes = (byte & 0x40) != 0,
          .is_spare = (byte & 0x80) != 0};
}

}  // namespace reprise

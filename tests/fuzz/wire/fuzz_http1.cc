// The first byte says how the rest arrives: see ArrivalOf.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/wire/feed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  reprise::FeedHttp1({reinterpret_cast<const char*>(data) + 1, size - 1},
                     reprise::ArrivalOf(data[0], size - 1));
  return 0;
}

// The first byte says in parts of how many bytes the rest arrives; 0: in one.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/wire/feed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t part = data[0] == 0 ? size : data[0];
  reprise::FeedHttp1({reinterpret_cast<const char*>(data) + 1, size - 1}, part);
  return 0;
}

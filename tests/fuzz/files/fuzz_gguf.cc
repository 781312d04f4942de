// libFuzzer target: see README.md.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/files/feed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  reprise::fuzz::FeedGguf({reinterpret_cast<const char*>(data), size});
  return 0;
}

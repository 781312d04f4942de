#include <cstddef>
#include <cstdint>

#include "tests/fuzz/texts/feed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  reprise::FeedTokenizerFile({reinterpret_cast<const char*>(data), size}).IgnoreError();
  return 0;
}

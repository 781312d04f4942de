// The first byte says how the rest arrives: see ArrivalOf.
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/wire/feed.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);  // a line for each message that is none
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  reprise::FeedHttp2({reinterpret_cast<const char*>(data) + 1, size - 1},
                     reprise::ArrivalOf(data[0], size - 1));
  return 0;
}

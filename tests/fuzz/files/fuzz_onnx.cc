// libFuzzer target: see README.md.
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/fuzz/files/feed.h"
#include "tests/fuzz/files/mutate.h"

// Changes fields of the message rather than bytes of the file.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  reprise::fuzz::Chance chance(seed);
  const std::string changed =
      reprise::fuzz::MutateOnnx({reinterpret_cast<const char*>(data), size}, chance);
  if (changed.size() > most) return size;
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);  // a line for each message that is none
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  reprise::fuzz::FeedOnnx({reinterpret_cast<const char*>(data), size});
  return 0;
}

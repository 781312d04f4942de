// libFuzzer target: see README.md.
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "proto/model_config.pb.h"
#include "tests/fuzz/files/mutate.h"
#include "tests/fuzz/requests/feed.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);  // a line for each message that is none
  return 0;
}

// Changes fields of a text that is a config as often as it changes bytes: fields that have to come
// together do not meet otherwise.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  reprise::fuzz::Chance chance(seed);
  inference::ModelConfig config;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (chance.OneIn(2) || !google::protobuf::TextFormat::ParseFromString(text, &config)) {
    return LLVMFuzzerMutate(data, size, most);
  }
  for (int64_t i = chance.Between(1, 3); i > 0; --i) reprise::fuzz::MutateMessage(config, chance);
  std::string changed;
  google::protobuf::TextFormat::PrintToString(config, &changed);
  if (changed.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  reprise::fuzz::FeedConfig({reinterpret_cast<const char*>(data), size});
  return 0;
}

// Copies of few bytes, without the call that a copy of any number takes.
#pragma once

#include <cstdint>
#include <cstring>

namespace reprise::cpu {

// `count` bytes, few as a rule; their number is the same many times in a row.
inline void CopyBytes(const uint8_t* from, int64_t count, uint8_t* to) {
  const auto copy = [&](auto word, int64_t at) {
    std::memcpy(&word, from + at, sizeof(word));
    std::memcpy(to + at, &word, sizeof(word));
  };
  struct Sixteen {
    uint64_t halves[2];
  };
  if (count >= 16) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) copy(Sixteen(), i);
    if (i < count) copy(Sixteen(), count - 16);
  } else if (count >= 8) {
    copy(uint64_t{}, 0);
    copy(uint64_t{}, count - 8);
  } else if (count >= 4) {
    copy(uint32_t{}, 0);
    copy(uint32_t{}, count - 4);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
  }
}

}  // namespace reprise::cpu

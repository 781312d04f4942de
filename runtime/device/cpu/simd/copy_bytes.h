// Copies of few bytes, without the call that a copy of any number takes.
#pragma once

#include <cstdint>
#include <cstring>

namespace reprise::cpu {

// Copies any number of bytes. It is meant for small counts that repeat many times in a row, so that
// the branches are predicted.
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

// Copies `rows` rows of `width` bytes, which lie `from_step` and `to_step` bytes apart.
inline void CopyRows(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t width,
                     int64_t rows) {
  const auto* in = static_cast<const uint8_t*>(from);
  auto* out = static_cast<uint8_t*>(to);
  const auto each = [&](const auto& copy) {
    for (int64_t row = 0; row < rows; ++row, in += from_step, out += to_step) copy();
  };
  // With a width that the compiler knows, a row is one load and one store.
  switch (width) {
    case 0:
      return;
    case 1:
      return each([&] { std::memcpy(out, in, 1); });
    case 2:
      return each([&] { std::memcpy(out, in, 2); });
    case 4:
      return each([&] { std::memcpy(out, in, 4); });
    case 8:
      return each([&] { std::memcpy(out, in, 8); });
    case 16:
      return each([&] { std::memcpy(out, in, 16); });
    default:
      break;
  }
  constexpr int64_t kFew = 64;
  if (width <= kFew) return each([&] { CopyBytes(in, width, out); });
  each([&] { std::memcpy(out, in, static_cast<size_t>(width)); });
}

}  // namespace reprise::cpu

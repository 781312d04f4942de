// UTF-8, as its bytes are read.
//
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace reprise {

struct Utf8Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: the text does not begin with UTF-8
};

// Returns the first character of `text`, which is not empty. Overlong forms, surrogates and numbers
// above 0x10ffff are no characters.
Utf8Character FirstCharacter(absl::string_view text);

// Whether all of `text` is UTF-8.
bool IsUtf8(absl::string_view text);

}  // namespace reprise

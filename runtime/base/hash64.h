// 64-bit content hash (XXH3). Stable across machines and versions of Reprise: it is written to
// disk.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace reprise {

uint64_t Hash64(absl::string_view bytes, uint64_t seed = 0);

// Returns sixteen lower-case hex digits: how a key is shown to people.
std::string HexKey(uint64_t hash);

}  // namespace reprise

#include "runtime/base/hash64.h"

#include <xxhash.h>

#include "absl/strings/str_cat.h"

namespace reprise {

uint64_t Hash64(absl::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string HexKey(uint64_t hash) { return absl::StrCat(absl::Hex(hash, absl::kZeroPad16)); }

}  // namespace reprise

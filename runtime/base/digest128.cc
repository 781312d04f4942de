#include "runtime/base/digest128.h"

// The state is then a complete type, which need not be made by the library.
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "absl/strings/escaping.h"

namespace reprise {

struct Digest128::State {
  XXH3_state_t xxh;
};

Digest128::Digest128() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Digest128::~Digest128() = default;

void Digest128::Add(absl::string_view bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::string Digest128::Bytes() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  return std::string(reinterpret_cast<const char*>(canonical.digest), sizeof(canonical.digest));
}

std::string Digest128::Hex() const {
  const std::string bytes = Bytes();
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

std::string HexDigest128(absl::string_view bytes) {
  Digest128 digest;
  digest.Add(bytes);
  return digest.Hex();
}

}  // namespace reprise

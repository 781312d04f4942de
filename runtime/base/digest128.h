// Digest128: a 128-bit content digest (XXH3-128). Stable across machines and versions of Reprise:
// it is written to disk. It detects accidental changes, not attacks.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace reprise {

class Digest128 {
 public:
  Digest128();
  ~Digest128();
  Digest128(const Digest128&) = delete;
  Digest128& operator=(const Digest128&) = delete;

  void Add(absl::string_view bytes);
  // Returns sixteen bytes, most significant first. More may be added afterwards.
  std::string Bytes() const;
  // Returns the same as 32 lower-case hex digits.
  std::string Hex() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// Returns the digest of one piece, in hex.
std::string HexDigest128(absl::string_view bytes);

}  // namespace reprise

// Digest: a checksum of bytes as they come.
//
// Threads: an object is used by one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace reprise {

class Digest {
 public:
  // `algorithm`: "sha256", "sha1" or "md5".
  explicit Digest(const std::string& algorithm);
  ~Digest();

  void Add(absl::string_view bytes);
  // Hexadecimal digits in lower case; nothing is added afterwards.
  std::string Hex();
  // Returns the bytes themselves.
  std::string Raw();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> state_;
};

// Returns the sha256 of `bytes` in hexadecimal digits.
std::string Sha256Hex(absl::string_view bytes);

// Returns the HMAC-SHA256 of `bytes` by `key`: 32 bytes.
std::string HmacSha256(absl::string_view key, absl::string_view bytes);

// Returns a signature by RS256 of `text` with a private key in PEM; empty for an unusable key.
std::string SignRs256(const std::string& pem, absl::string_view text);

}  // namespace reprise

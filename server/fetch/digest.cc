#include "server/fetch/digest.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include "absl/strings/escaping.h"
#include "runtime/base/status_macros.h"

namespace reprise {

Digest::Digest(const std::string& algorithm) : state_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  const EVP_MD* kind = EVP_get_digestbyname(algorithm.c_str());
  REPRISE_CHECK(kind != nullptr && EVP_DigestInit_ex(state_.get(), kind, nullptr) == 1);
}

Digest::~Digest() = default;

void Digest::Add(absl::string_view bytes) {
  REPRISE_CHECK(EVP_DigestUpdate(state_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Digest::Raw() {
  std::string raw(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  REPRISE_CHECK(
      EVP_DigestFinal_ex(state_.get(), reinterpret_cast<unsigned char*>(raw.data()), &size) == 1);
  raw.resize(size);
  return raw;
}

std::string Digest::Hex() { return absl::BytesToHexString(Raw()); }

std::string Sha256Hex(absl::string_view bytes) {
  Digest digest("sha256");
  digest.Add(bytes);
  return digest.Hex();
}

std::string HmacSha256(absl::string_view key, absl::string_view bytes) {
  std::string mac(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  REPRISE_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                     reinterpret_cast<unsigned char*>(mac.data()), &size) != nullptr);
  mac.resize(size);
  return mac;
}

std::string SignRs256(const std::string& pem, absl::string_view text) {
  const std::unique_ptr<BIO, int (*)(BIO*)> source(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      PEM_read_bio_PrivateKey(source.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> state(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (key == nullptr ||
      EVP_DigestSignInit(state.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1) {
    return "";
  }
  size_t size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  if (EVP_DigestSign(state.get(), nullptr, &size, bytes, text.size()) != 1) return "";
  std::string signature(size, '\0');
  if (EVP_DigestSign(state.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                     text.size()) != 1) {
    return "";
  }
  signature.resize(size);
  return signature;
}

}  // namespace reprise

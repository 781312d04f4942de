#include "server/transport/tls_context.h"

#include <openssl/err.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// How often the files are looked at.
constexpr std::chrono::seconds kReloadInterval(1);
// The ciphers of TLS 1.2: those whose keys a stolen certificate cannot find out later, and that
// authenticate. TLS 1.3 has no others.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

std::string LastError() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : absl::StrCat("error ", code);
}

absl::Status CannotUse(const char* what, const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat("TLS: the ", what, " \"", path, "\" cannot be used: ", LastError()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::Make(TlsFiles files,
                                                             std::vector<std::string> protocols,
                                                             Trouble on_trouble) {
  std::string wire;
  for (const std::string& protocol : protocols) {
    wire += static_cast<char>(protocol.size());
    wire += protocol;
  }
  std::shared_ptr<TlsContext> tls(
      new TlsContext(std::move(files), std::move(wire), std::move(on_trouble)));
  MutexLock lock(tls->mutex_);
  tls->states_ = tls->FileStates();
  tls->looked_ = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(tls->context_, tls->Load());
  return tls;
}

absl::StatusOr<TlsContext::Context> TlsContext::Load() const {
  ERR_clear_error();
  Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return absl::ResourceExhaustedError("TLS: " + LastError());
  SSL_CTX* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  if (SSL_CTX_set_cipher_list(raw, kCiphers) != 1) {
    return absl::InternalError(absl::StrCat("TLS: no cipher of ", kCiphers, ": ", LastError()));
  }
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Clients keep their sessions themselves, as tickets: here they would outlive their connections.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  // A key that needs a password is refused: there is no one to ask.
  SSL_CTX_set_default_passwd_cb(raw, [](char*, int, int, void*) { return 0; });
  // Idle connections hold no buffers, and a write may be continued from another address.
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(raw, files_.certificate.c_str()) != 1) {
    return CannotUse("certificate", files_.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(raw, files_.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(raw) != 1) {
    return CannotUse("key", files_.key);
  }
  if (files_.demands_client_certificate) {
    if (SSL_CTX_load_verify_locations(raw, files_.root.c_str(), nullptr) != 1) {
      return CannotUse("root certificate", files_.root);
    }
    SSL_CTX_set_client_CA_list(raw, SSL_load_client_CA_file(files_.root.c_str()));
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // A session that is resumed proves the certificate of its first connection.
    static constexpr unsigned char kSessions[] = "reprise";
    SSL_CTX_set_session_id_context(raw, kSessions, sizeof(kSessions) - 1);
  }
  SSL_CTX_set_alpn_select_cb(raw, &TlsContext::ChooseProtocol, const_cast<TlsContext*>(this));
  return context;
}

int TlsContext::ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                               const unsigned char* offered, unsigned offered_size, void* self) {
  const std::string& ours = static_cast<const TlsContext*>(self)->protocols_;
  unsigned char* found = nullptr;
  const int result =
      SSL_select_next_proto(&found, size, reinterpret_cast<const unsigned char*>(ours.data()),
                            static_cast<unsigned>(ours.size()), offered, offered_size);
  if (result != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

std::string TlsContext::FileStates() const {
  std::string states;
  for (const std::string& path : {files_.certificate, files_.key, files_.root}) {
    struct stat file = {};
    if (path.empty() || stat(path.c_str(), &file) != 0) continue;
    absl::StrAppend(&states, file.st_ino, " ", file.st_size, " ", file.st_mtim.tv_sec, " ",
                    file.st_mtim.tv_nsec, ";");
  }
  return states;
}

std::unique_ptr<SSL, decltype(&SSL_free)> TlsContext::NewSession() {
  Context context;
  absl::Status trouble;
  {
    MutexLock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ >= kReloadInterval) {
      looked_ = now;
      if (std::string states = FileStates(); states != states_) {
        states_ = std::move(states);
        auto loaded = Load();
        if (loaded.ok()) context_ = *std::move(loaded);
        trouble = loaded.status();
      }
    }
    context = context_;
  }
  if (!trouble.ok() && on_trouble_ != nullptr) on_trouble_(trouble);
  return {SSL_new(context.get()), SSL_free};
}

}  // namespace reprise

// TlsContext: the certificate, the key and the demands of a port that speaks TLS.
//
// The files are read again when they change on disk; existing connections keep the ones that they
// began with. Files that cannot be used leave the former ones in use, and a callback is told.
//
// Threads: all methods from any.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"

namespace reprise {

struct TlsFiles {
  std::string certificate;  // PEM, the server's first, then those that lead to its root
  std::string key;          // PEM
  std::string root;         // PEM: signers of clients' certificates; needed where these are
                            // demanded
  bool demands_client_certificate = false;
};

class TlsContext {
 public:
  using Trouble = std::function<void(const absl::Status&)>;

  // `protocols`: the names that ALPN may settle on ("h2"), the best first. A client that offers
  // only others is refused; one that offers none is taken. Errors: INVALID_ARGUMENT naming the file
  // that cannot be used.
  static absl::StatusOr<std::shared_ptr<TlsContext>> Make(TlsFiles files,
                                                          std::vector<std::string> protocols,
                                                          Trouble on_trouble);

  // Returns a new server's side of a connection; null where there is no memory for it.
  std::unique_ptr<SSL, decltype(&SSL_free)> NewSession();

 private:
  using Context = std::shared_ptr<SSL_CTX>;

  TlsContext(TlsFiles files, std::string protocols, Trouble on_trouble)
      : files_(std::move(files)),
        protocols_(std::move(protocols)),
        on_trouble_(std::move(on_trouble)) {}

  absl::StatusOr<Context> Load() const;
  // Returns when the files changed last, and how large they are: as text to compare.
  std::string FileStates() const;
  static int ChooseProtocol(SSL* session, const unsigned char** chosen, unsigned char* size,
                            const unsigned char* offered, unsigned offered_size, void* self);

  // Constant after construction.
  const TlsFiles files_;
  const std::string protocols_;  // as ALPN has them: a length before each
  const Trouble on_trouble_;
  // Guarded.
  Mutex mutex_;
  Context context_ GUARDED_BY(mutex_);
  std::string states_ GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point looked_ GUARDED_BY(mutex_);
};

}  // namespace reprise

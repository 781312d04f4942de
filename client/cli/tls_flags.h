// The flags of a server that speaks TLS, for commands that ask one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace reprise::cli {

// The flags --tls, --tls-ca, --tls-cert, --tls-key and --tls-name; the first four may come from the
// environment ($REPRISE_TLS_CA). Each of the files turns TLS on.
struct TlsFlags {
  bool use = false;
  std::string ca;    // path of a PEM file; empty: the authorities that the system trusts
  std::string cert;  // path of a PEM file, for servers that require one
  std::string key;
  std::string name;  // that the server's certificate has, if not the one in its address

  void Add(CLI::App& command);
  bool on() const { return use || !ca.empty() || !cert.empty() || !key.empty() || !name.empty(); }
  // Reads the files. Errors: a file that cannot be read, a certificate without its key.
  absl::StatusOr<client::TlsOptions> Read() const;
};

}  // namespace reprise::cli

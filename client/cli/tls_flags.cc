#include "client/cli/tls_flags.h"

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  if (path.empty()) return "";
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad() || !file.is_open() || text.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' cannot be read, or is empty"));
  }
  return text;
}

}  // namespace

void TlsFlags::Add(CLI::App& command) {
  command.add_flag("--tls", use, "The server speaks TLS")->envname("REPRISE_TLS");
  AddOption(command, "--tls-ca", ca, "FILE",
            "Authorities (PEM) that signed the server's certificate; the system's if "
            "not given")
      ->envname("REPRISE_TLS_CA");
  AddOption(command, "--tls-cert", cert, "FILE", "Certificate (PEM) for servers that require one")
      ->envname("REPRISE_TLS_CERT");
  AddOption(command, "--tls-key", key, "FILE", "Its key")->envname("REPRISE_TLS_KEY");
  AddOption(command, "--tls-name", name, "NAME",
            "The name in the server's certificate, if it differs from its address");
}

absl::StatusOr<client::TlsOptions> TlsFlags::Read() const {
  if (cert.empty() != key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key need each other");
  }
  client::TlsOptions options{.use = on(), .server_name = name};
  ASSIGN_OR_RETURN(options.authorities, ReadPem(ca));
  ASSIGN_OR_RETURN(options.certificate, ReadPem(cert));
  ASSIGN_OR_RETURN(options.key, ReadPem(key));
  return options;
}

}  // namespace reprise::cli

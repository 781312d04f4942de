// AccessGate: may this client do that? The one place where it is decided, for every face and port.
//
//   absl::StatusOr<std::shared_ptr<KeyUse>> who =
//       gate.Check(Right::kInfer, {.api_key = request.Field("x-api-key"), ...});
//
// Without a key file inference, observation and metrics are open to every client that reaches the
// port; admin is open to clients on this machine, to others only with --allow-admin. With a key
// file each call but those that take no right needs a key that has the right. With an admin port
// the rights of admin are used there and nowhere else.
//
// Threads: all methods from any.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/access/key_ring.h"
#include "server/access/right_table.h"

namespace reprise {

// The credentials that came with a call. Views of the transport's memory.
struct Caller {
  absl::string_view authorization = {};  // the header `authorization`: "Bearer KEY"
  absl::string_view api_key = {};        // the header `x-api-key`
  bool is_local = false;  // the client is on this machine: a loopback address or a Unix socket
  bool on_admin_port = false;
};

class AccessGate {
 public:
  struct Options {
    bool allow_admin = false;
    bool has_admin_port = false;
  };
  // `keys`: null without a key file.
  AccessGate(const Options& options, std::unique_ptr<KeyRing> keys)
      : options_(options), keys_(std::move(keys)) {}

  // Returns the key that counts, null where none is needed. Errors: UNAUTHENTICATED where a key is
  // missing or wrong, PERMISSION_DENIED where it lacks the right, or where the call is not for
  // this port. No error contains the presented key.
  absl::StatusOr<std::shared_ptr<KeyUse>> Check(Right right, const Caller& caller) const;

 private:
  const Options options_;
  const std::unique_ptr<KeyRing> keys_;
};

}  // namespace reprise

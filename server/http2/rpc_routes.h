// RpcRoutes: paths of methods -> their handlers.
//
// Threads: Add and SetGate before the first call; the rest from any.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http2/rpc_call.h"

namespace reprise {

struct RpcMethod {
  // Makes the handler of a call.
  std::function<std::shared_ptr<RpcHandler>(std::shared_ptr<RpcCall>)> start;
  // A client may wait with its messages as long as it likes; else the only one must come soon.
  bool is_stream = false;
  // Probes ask for it: answered also on spare connections.
  bool is_probe = false;
  // Its handler tells the log of each message that it was handed.
  bool tells_log = false;
};

class RpcRoutes {
 public:
  // Says whether a call may go on, by its head alone: credentials, rights, the peer. A
  // refused call is answered with its status. It leaves the key that counts in the head.
  using Gate = std::function<absl::Status(CallHead& head)>;

  void Add(std::string path, RpcMethod method) { methods_[std::move(path)] = std::move(method); }
  // Marks the method as one that probes ask for.
  void MarkProbe(const std::string& path) { methods_[path].is_probe = true; }
  void MarkTellsLog(const std::string& path) { methods_[path].tells_log = true; }
  void SetGate(Gate gate) { gate_ = std::move(gate); }

  // Returns nullptr where there is no such method.
  const RpcMethod* Find(absl::string_view path) const {
    const auto it = methods_.find(path);
    return it == methods_.end() ? nullptr : &it->second;
  }
  absl::Status Check(CallHead& head) const {
    return gate_ == nullptr ? absl::OkStatus() : gate_(head);
  }

 private:
  absl::flat_hash_map<std::string, RpcMethod> methods_;
  Gate gate_;
};

}  // namespace reprise

// CallHead: the facts of a call that come before its first message: path, metadata, deadline, peer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/access/key_use.h"
#include "server/tracing/request_trace.h"
#include "server/transport/peer.h"

namespace reprise {

// Compressions of messages that are understood, as grpc-accept-encoding lists them.
inline constexpr char kGrpcEncodings[] = "identity,deflate,gzip";

struct CallHead {
  std::string path;  // "/inference.GRPCInferenceService/ModelInfer"
  // Metadata of the client, names in lower case; values of names in "-bin" are decoded.
  std::vector<std::pair<std::string, std::string>> fields;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::shared_ptr<const Peer> peer;
  std::shared_ptr<KeyUse> key;          // the gate's finding; null where no key is needed
  std::shared_ptr<RequestTrace> trace;  // the gate's as well; null: the call is not traced

  // Returns the first value of `name`; "" where there is none.
  absl::string_view Field(absl::string_view name) const {
    for (const auto& [key, value] : fields) {
      if (key == name) return value;
    }
    return "";
  }
};

// Fills `head`, except for its peer, and `encoding` (how messages are compressed, where they are)
// from the fields of a header. `opened`: when the call began. Errors: INVALID_ARGUMENT for a value
// that cannot be read, UNIMPLEMENTED for another compression.
absl::Status ReadCallHead(std::vector<std::pair<std::string, std::string>> fields,
                          std::chrono::steady_clock::time_point opened, CallHead& head,
                          std::string& encoding);

}  // namespace reprise

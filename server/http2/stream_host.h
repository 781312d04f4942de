// StreamHost: the connection that a stream lives on, as the stream sees it.
//
// Threads: the threads of `executor`, except where a method says otherwise.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "server/http2/http2_session.h"
#include "server/http2/rpc_routes.h"
#include "server/transport/byte_account.h"
#include "server/transport/peer.h"

namespace reprise {

// Limits that all calls of a server share.
struct RpcLimits {
  int64_t max_message_bytes = 64 << 20;  // a client's, also once it is inflated
  // Compressed messages become no larger than this either; asked for each. Null: no such limit.
  std::function<int64_t()> max_inflated_bytes = nullptr;
  // Told how each call ended whose handler does not log (RpcMethod::tells_log); may be null.
  std::function<void(const CallHead& head, const absl::Status& status,
                     std::chrono::nanoseconds took)>
      on_end = nullptr;
  // Fields in front of every answer.
  Http2Fields head_fields = {};
  // Adds fields after an answer; may be null.
  std::function<void(const CallHead& head, Http2Fields& trailers)> add_trailers = nullptr;
  // A message, once it has begun, and the only message of a call that takes one, may take this
  // time, and a second for each least_bytes_per_second of its bytes; so may an answer, which also
  // must not stand still that time.
  std::chrono::nanoseconds read_timeout = std::chrono::seconds(30);
  std::chrono::nanoseconds write_timeout = std::chrono::seconds(30);
  int64_t least_bytes_per_second = 64 << 10;
};

class Http2StreamHost {
 public:
  virtual ~Http2StreamHost() = default;

  // Any thread. Work that runs on it ends with Flush.
  virtual boost::asio::any_io_executor executor() = 0;
  // Returns nullptr once the connection has ended.
  virtual Http2Session* session() = 0;
  // Sends the session's pending bytes.
  virtual void Flush() = 0;
  // Ends the connection: there is no memory to go on with it. Any thread.
  virtual void Abort() noexcept = 0;

  virtual const RpcRoutes& routes() const = 0;
  virtual const RpcLimits& limits() const = 0;
  virtual const std::shared_ptr<ConnectionBytes>& account() const = 0;
  virtual const std::shared_ptr<const Peer>& peer() const = 0;
  virtual bool is_spare() const = 0;
  // Adds `change` to the number of streams whose answer the client has not taken.
  virtual void CountUntaken(int change) = 0;
  // Calls `done` once the last bytes of a stream that is over have left, or never will.
  virtual void WhenSent(std::function<void()> done) = 0;
};

}  // namespace reprise

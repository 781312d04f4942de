// Http2Connection: one client's connection, from its first byte to its last: moves bytes between
// the client's stream and the session, and ends steps that last too long.
//
// A connection that waits holds no buffers of its own: read bytes go to the session at once.
//
// Ownership: kept alive by the step under way and by its streams; the server knows it until it
// ends. Threads:   all steps run on the connection's strand.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/http2/frame_gate.h"
#include "server/http2/http2_session.h"
#include "server/http2/rpc_routes.h"
#include "server/http2/stream_host.h"
#include "server/transport/byte_account.h"
#include "server/transport/client_stream.h"

namespace reprise {

// Times of a connection. Zero: no limit.
struct Http2Times {
  std::chrono::nanoseconds begin = std::chrono::seconds(10);  // preface and settings, a header
  std::chrono::nanoseconds max_idle = std::chrono::hours(1);  // while there is no call
  std::chrono::nanoseconds max_age{0};                        // a tenth more or less
  std::chrono::nanoseconds max_age_grace{0};                  // calls that are open by then have it
  std::chrono::nanoseconds keepalive = std::chrono::hours(2);  // silence before a ping
  std::chrono::nanoseconds keepalive_timeout = std::chrono::seconds(20);
  bool keepalive_without_calls = false;
  // A client that has no call may ping this often, and be early max_ping_strikes times.
  std::chrono::nanoseconds least_ping_interval = std::chrono::minutes(5);
  int max_ping_strikes = 2;
};

// State that all connections of a server share; outlives them.
struct Http2Context {
  Http2Limits http2;
  Http2Times times;
  RpcLimits rpc;
  const RpcRoutes* routes = nullptr;
  const ByteAccount* account = nullptr;
};

class Http2Connection final : public Http2StreamHost,
                              public std::enable_shared_from_this<Http2Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  Http2Connection(ClientStream stream, const Http2Context& context);

  // Once, on the strand. `ended` is called when the connection has ended.
  void Start(std::function<void()> ended);
  // Looks at the clock, about once a second. On the strand.
  void Check(Clock::time_point now);
  // Lets calls that are open end, and takes no more. A client that is calling is told so with its
  // next answer, or soon, so that the news does not meet a call on its way; `at_once`: now. On the
  // strand.
  void Drain(bool at_once);
  // Ends the connection with all its calls. On the strand.
  void End();

  // Http2StreamHost.
  boost::asio::any_io_executor executor() override { return stream_.get_executor(); }
  Http2Session* session() override { return session_.get(); }
  void Flush() override;
  void Abort() noexcept override { stream_.Abort(); }
  const RpcRoutes& routes() const override { return *context_.routes; }
  const RpcLimits& limits() const override { return context_.rpc; }
  const std::shared_ptr<ConnectionBytes>& account() const override { return account_; }
  const std::shared_ptr<const Peer>& peer() const override { return stream_.peer(); }
  bool is_spare() const override { return stream_.is_spare(); }
  void CountUntaken(int change) override { untaken_ += static_cast<size_t>(change); }
  void WhenSent(std::function<void()> done) override { closed_.push_back(std::move(done)); }

 private:
  void WaitToRead(ClientStream::State state);
  void ReadSome();
  // Returns whether the client has read all that we sent, and has room for answers.
  bool TakesAnswers() const { return session_->RoomForAnswers() >= context_.http2.max_streams; }
  // Streams that the client may have open now: few while it does not take its answers.
  size_t MostStreams() const;
  bool MayOpenStream() const { return session_->streams() < MostStreams(); }
  // Hands bytes to the session. False: it takes no more.
  bool Pass(absl::string_view bytes);
  // Begins calls that had to wait. True: it did.
  bool ReleaseCalls();
  // Bytes of calls that may wait to begin.
  size_t MostHeld() const;
  // Returns whether enough bytes wait, to be sent or to begin.
  bool HoldsReads() const;
  // Reads again where that was held up.
  void ReadOn();
  // Sends as much as possible at once. False: the rest waits, or the connection has ended.
  bool WriteSome();
  void WaitToWrite(ClientStream::State state);
  void TellClosed();
  void CheckCalls(Clock::time_point now);
  // Tells a client that has heard of the server's leaving which call is the last one.
  void TellLastStream(Clock::time_point now);
  // Waits for the client, which closes when it has read everything.
  void Linger();
  void CheckKeepalive(Clock::time_point now);

  const Http2Context& context_;
  ClientStream stream_;
  const std::shared_ptr<ConnectionBytes> account_;
  std::unique_ptr<Http2Session> session_;  // null once the connection has ended
  std::function<void()> ended_;
  const Clock::time_point opened_ = Clock::now();
  std::chrono::nanoseconds age_{0};  // the most that this connection may reach
  // Bytes that are being written.
  std::string out_;
  size_t out_sent_ = 0;
  bool writing_ = false;           // a wait is under way
  Clock::time_point write_began_;  // when `out_` was filled
  std::vector<std::function<void()>> closed_;
  FrameGate gate_;
  size_t untaken_ = 0;      // streams with an answer that the client has not taken
  size_t allowed_streams_;  // that may be open whatever is not taken
  size_t most_held_;        // bytes that may wait of a client that has not proved to read
  bool reads_held_ = false;
  bool failed_ = false;  // pending bytes are still sent, nothing is received
  // Times that Check compares with the clock.
  Clock::time_point received_ = opened_;
  Clock::time_point idle_since_ = opened_;
  std::optional<Clock::time_point> pinged_;
  std::optional<Clock::time_point> drained_;
  bool last_stream_told_ = false;
  std::optional<Clock::time_point> lingers_;
};

}  // namespace reprise

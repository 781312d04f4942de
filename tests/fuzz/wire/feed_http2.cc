#include <google/protobuf/wrappers.pb.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/http2/frame_gate.h"
#include "server/http2/grpc_stream.h"
#include "server/http2/http2_session.h"
#include "server/http2/unary_method.h"
#include "tests/fuzz/wire/feed.h"

namespace reprise {
namespace {

using google::protobuf::BytesValue;

// Returns whether the frames that a server sent tell the client of an error of the connection.
bool HasErrorOfConnection(absl::string_view frames) {
  constexpr size_t kHead = 9, kCodeAt = kHead + 4;
  constexpr char kGoAway = 7;
  while (frames.size() > kHead) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(frames[at]); };
    const size_t size = size_t{byte(0)} << 16 | size_t{byte(1)} << 8 | byte(2);
    if (frames[3] == kGoAway && size >= 8 && byte(kCodeAt + 3) != 0) return true;
    frames.remove_prefix(std::min(frames.size(), kHead + size));
  }
  return false;
}

// Answers each message with itself.
class EchoStream final : public RpcHandler {
 public:
  explicit EchoStream(std::shared_ptr<RpcCall> call) : call_(std::move(call)) {}
  void OnMessage(RpcMessage message) override {
    const auto answer = std::make_shared<BytesValue>();
    const absl::Status parsed = ParseMessage(message.bytes, *answer);
    if (!parsed.ok()) return call_->Finish(parsed);
    call_->Send(answer);
  }
  void OnSent() override { call_->Read(); }
  void OnHalfClose() override { call_->Finish(absl::OkStatus()); }

 private:
  const std::shared_ptr<RpcCall> call_;
};

// A connection without a socket.
class Host final : public Http2StreamHost, public std::enable_shared_from_this<Host> {
 public:
  explicit Host(bool is_spare) : account_(all_.Open()), is_spare_(is_spare) {
    AddMethod<BytesValue, BytesValue>(routes_, "/echo/Unary",
                                      [](const BytesValue& request, BytesValue& response) {
                                        response = request;
                                        return absl::OkStatus();
                                      });
    AddMethod<BytesValue, BytesValue>(
        routes_, "/echo/Fails", [](const BytesValue& request, BytesValue&) {
          return absl::NotFoundError(absl::StrCat("there is no ", request.value()));
        });
    routes_.Add("/echo/Stream", {.start =
                                     [](std::shared_ptr<RpcCall> call) {
                                       return std::make_shared<EchoStream>(std::move(call));
                                     },
                                 .is_stream = true,
                                 .is_probe = true});
  }
  void Start() {
    session_ = std::make_unique<Http2Session>(Http2Limits(), [this](int32_t id) {
      return std::make_shared<GrpcStream>(shared_from_this(), id);
    });
    session_->SetPingInterval(kPingInterval);
  }
  void Feed(absl::string_view bytes) {
    if (session_ == nullptr) return;
    bool received = true;
    const auto may_open = [this] {
      return session_->streams() < (session_->RoomForAnswers() > 0 ? kMostStreams : 1);
    };
    const auto pass = [&](absl::string_view passed) {
      return received = received && session_->Receive(passed).ok();
    };
    gate_.Receive(bytes, may_open, pass);
    // Calls that end make room for those that wait, whose handlers have work then.
    for (bool goes_on = true; goes_on;) {
      Flush();
      io_.restart();
      goes_on = io_.poll() > 0;
      goes_on = (received && gate_.Release(may_open, pass)) || goes_on;
    }
    if (session_->ping_strikes() > kMostPingStrikes) {
      session_->FinishGoAway(NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
      Flush();
      received = false;
    }
    if (session_->is_goaway_heard() && !std::exchange(last_stream_told_, true)) {
      session_->FinishGoAway(NGHTTP2_NO_ERROR, "");
    }
    if (!received || session_->IsOver()) End();
  }
  // Leaves as a server that drains.
  void Leave() {
    if (session_ == nullptr) return;
    session_->streams() > 0 ? session_->BeginGoAwayWithAnswer() : session_->BeginGoAway();
    Flush();
  }
  // Waits as a connection does when its client is silent: calls that took too long end.
  void Wait() {
    if (session_ == nullptr) return;
    session_->Ping();
    const auto later = GrpcStream::Clock::now() + kWait;
    session_->ForEach(
        [&](Http2Stream& stream) { static_cast<GrpcStream&>(stream).CheckTime(later); });
    Flush();
    io_.restart();
    io_.poll();
  }
  void End() {
    if (session_ == nullptr) return;
    fed.cut_off |= HasErrorOfConnection(fed.answer);
    const std::unique_ptr<Http2Session> session = std::move(session_);
    session->CloseAll();
    for (const auto& done : std::exchange(closed_, {})) done();
    io_.restart();
    io_.poll();
  }

  boost::asio::any_io_executor executor() override { return io_.get_executor(); }
  Http2Session* session() override { return session_.get(); }
  void Flush() override {
    if (session_ != nullptr && !session_->Produce(fed.answer, SIZE_MAX).ok()) fed.cut_off = true;
  }
  void Abort() noexcept override { fed.cut_off = true; }
  const RpcRoutes& routes() const override { return routes_; }
  const RpcLimits& limits() const override { return limits_; }
  const std::shared_ptr<ConnectionBytes>& account() const override { return account_; }
  const std::shared_ptr<const Peer>& peer() const override { return peer_; }
  bool is_spare() const override { return is_spare_; }
  void CountUntaken(int) override {}
  void WhenSent(std::function<void()> done) override { closed_.push_back(std::move(done)); }

  Fed fed;

 private:
  static constexpr size_t kMostStreams = 8;  // open at a time, so that the gate has work
  static constexpr std::chrono::hours kPingInterval{1}, kWait{1};
  static constexpr int kMostPingStrikes = 8;

  const ByteAccount all_{{.max_bytes = 16 << 20, .max_connection_bytes = 8 << 20}};
  // More than is decompressed at a time, and no more than the account has.
  const RpcLimits limits_{.max_message_bytes = 5 << 20,
                          .max_inflated_bytes = [] { return int64_t{2} << 20; }};
  boost::asio::io_context io_;
  RpcRoutes routes_;
  const std::shared_ptr<ConnectionBytes> account_;
  const std::shared_ptr<const Peer> peer_ = std::make_shared<Peer>();
  const bool is_spare_;
  bool last_stream_told_ = false;
  FrameGate gate_;
  std::unique_ptr<Http2Session> session_;
  std::vector<std::function<void()>> closed_;
};

}  // namespace

Fed FeedHttp2(absl::string_view bytes, const Arrival& arrival) {
  const auto host = std::make_shared<Host>(arrival.is_spare);
  host->Start();
  const size_t part = arrival.part_bytes, half = bytes.size() / 2;
  bool leaves = arrival.server_leaves;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(part, bytes.size()))) {
    if (leaves && bytes.size() <= std::max(half, part)) host->Leave();
    leaves = leaves && bytes.size() > std::max(half, part);
    host->Feed(bytes.substr(0, part));
  }
  if (!arrival.client_vanishes) host->Wait();
  host->End();
  return host->fed;
}

}  // namespace reprise

#include <google/protobuf/wrappers.pb.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "server/http2/frame_gate.h"
#include "server/http2/grpc_stream.h"
#include "server/http2/http2_session.h"
#include "server/http2/unary_method.h"
#include "tests/fuzz/wire/feed.h"

namespace reprise {
namespace {

using google::protobuf::BytesValue;

// Whether the frames that a server sent tell the client of an error of the connection.
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
  Host() : account_(all_.Open()) {
    AddMethod<BytesValue, BytesValue>(routes_, "/echo/Unary",
                                      [](const BytesValue& request, BytesValue& response) {
                                        response = request;
                                        return absl::OkStatus();
                                      });
    routes_.Add("/echo/Stream", {.start =
                                     [](std::shared_ptr<RpcCall> call) {
                                       return std::make_shared<EchoStream>(std::move(call));
                                     },
                                 .is_stream = true});
  }
  void Start() {
    session_ = std::make_unique<Http2Session>(Http2Limits(), [this](int32_t id) {
      return std::make_shared<GrpcStream>(shared_from_this(), id);
    });
  }
  void Feed(absl::string_view bytes) {
    if (session_ == nullptr) return;
    bool received = true;
    const auto may_open = [this] { return session_->streams() < kMostStreams; };
    const auto pass = [&](absl::string_view passed) {
      return received = received && session_->Receive(passed).ok();
    };
    gate_.Receive(bytes, may_open, pass);
    do {
      Flush();
    } while (received && gate_.Release(may_open, pass));
    io_.restart();
    io_.poll();
    if (!received || session_->IsOver()) End();
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
  bool is_spare() const override { return false; }
  void CountUntaken(int) override {}
  void WhenSent(std::function<void()> done) override { closed_.push_back(std::move(done)); }

  Fed fed;

 private:
  static constexpr size_t kMostStreams = 8;  // open at a time, so that the gate has work

  const ByteAccount all_{{.max_bytes = 16 << 20, .max_connection_bytes = 8 << 20}};
  const RpcLimits limits_{.max_message_bytes = 1 << 20};
  boost::asio::io_context io_;
  RpcRoutes routes_;
  const std::shared_ptr<ConnectionBytes> account_;
  const std::shared_ptr<const Peer> peer_ = std::make_shared<Peer>();
  FrameGate gate_;
  std::unique_ptr<Http2Session> session_;
  std::vector<std::function<void()>> closed_;
};

}  // namespace

Fed FeedHttp2(absl::string_view bytes, size_t part_bytes) {
  const auto host = std::make_shared<Host>();
  host->Start();
  for (; !bytes.empty(); bytes.remove_prefix(std::min(part_bytes, bytes.size()))) {
    host->Feed(bytes.substr(0, part_bytes));
  }
  host->End();
  return host->fed;
}

}  // namespace reprise

// GrpcStream: one stream of HTTP/2 as a call of gRPC: its header, its messages both ways, its
// status.
//
// Ownership: the stream is held by the session until it closes, by the handler until it is told
//            OnDone, and by pending answers.
// Threads:   as RpcCall and Http2Stream say; all state is used on the connection's executor alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "server/http2/message_reader.h"
#include "server/http2/rpc_call.h"
#include "server/http2/stream_host.h"
#include "server/transport/inflate.h"

namespace reprise {

class GrpcStream final : public RpcCall,
                         public Http2Stream,
                         public std::enable_shared_from_this<GrpcStream> {
 public:
  using Clock = std::chrono::steady_clock;

  GrpcStream(std::shared_ptr<Http2StreamHost> host, int32_t id);

  // RpcCall.
  const CallHead& head() const override { return head_; }
  void Read() noexcept override;
  void Send(Message message) noexcept override;
  void Reply(Message message) noexcept override;
  void Finish(const absl::Status& status) noexcept override;

  // Http2Stream.
  void OnHead(Http2Fields fields, bool is_too_large) override;
  void OnData(absl::string_view bytes) override;
  void OnEnd() override;
  void OnClose() override;
  Produced Produce(char* to, size_t size) override;
  Http2Fields Trailers() override;

  // Ends the call where its client is too slow with a message, or does not take an answer.
  void CheckTime(Clock::time_point now);
  // More of the client's messages may come.
  bool is_open_to_client() const { return !ended_ && !status_.has_value(); }

 private:
  // An answer that is not sent yet.
  struct Outgoing {
    std::string bytes;  // five of them in front are the prefix
    HeldBytes held;
  };

  // Runs `work(GrpcStream&)` on the executor, while the connection lives.
  template <typename Work>
  void Post(Work work) noexcept;
  // Answers a request that is no call of gRPC.
  void RefuseHttp(int status);
  void Start();
  // Hands the next message to the handler where it has asked for one.
  void Deliver();
  int64_t MostInflatedBytes() const;
  void Inflate();
  void Hand(RpcMessage message);
  void Queue(const google::protobuf::MessageLite& message);
  void End(const absl::Status& status);
  void EndTrace(const absl::Status& status) const;
  // Tells the log how the call ended, unless its handler does.
  void Tell(const absl::Status& status) const;
  // Tells the connection whether an answer waits for the client.
  void CountUntaken();
  // Returns the fields that end the call.
  Http2Fields EndFields() const;
  // Sends the header of an answer with messages, once.
  void Respond();

  const std::shared_ptr<Http2StreamHost> host_;
  const int32_t id_;
  const Clock::time_point opened_ = Clock::now();
  CallHead head_;
  HeldBytes held_head_;
  std::string encoding_;  // names how messages are compressed
  std::shared_ptr<RpcHandler> handler_;
  bool is_stream_ = false;
  bool tells_log_ = false;
  // Messages that come.
  MessageReader reader_;
  Clock::time_point message_began_ = Clock::time_point::max();
  int64_t message_bytes_ = 0;  // have come of it
  std::unique_ptr<Inflater> inflater_;
  RpcMessage inflating_;
  size_t unconsumed_ = 0;  // bytes of messages that have not been asked for
  bool wanted_ = true;     // the handler asks for a message
  bool ended_ = false;     // the client sends no more
  bool told_end_ = false;
  bool had_message_ = false;
  // Messages that go.
  std::list<Outgoing> outgoing_;
  size_t sent_ = 0;                                              // bytes of the first one have left
  Clock::time_point outgoing_began_ = Clock::time_point::max();  // the first one waits since
  Clock::time_point outgoing_moved_ = Clock::time_point::max();  // and some of it has left
  bool is_untaken_ = false;                                      // the connection counts an answer
  bool responded_ = false;
  bool trailers_sent_ = false;
  std::optional<absl::Status> status_;  // the call is finished
  bool closed_ = false;
};

}  // namespace reprise

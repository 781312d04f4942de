#include "server/http2/grpc_stream.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "server/http2/call_head.h"
#include "server/http2/grpc_text.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

constexpr size_t kPrefixBytes = 5;
constexpr int64_t kOverhead = 128;           // an answer takes them besides its bytes
constexpr int64_t kCallBytes = 2 << 10;      // a call takes them besides its header
constexpr int64_t kInflatedBytes = 1 << 20;  // decompressed at a time, in some milliseconds
constexpr char kContentType[] = "application/grpc";

// Returns the fields in front of every answer that has messages.
const Http2Fields& ResponseFields() {
  static const Http2Fields& fields = *new Http2Fields{
      {":status", "200"}, {"content-type", kContentType}, {"grpc-accept-encoding", kGrpcEncodings}};
  return fields;
}

Http2Fields StatusFields(const absl::Status& status) {
  if (status.ok()) return {{"grpc-status", "0"}};
  return {{"grpc-status", absl::StrCat(ErrorRowOf(status.code()).grpc)},
          {"grpc-message", PercentEncoded(ErrorMessage(status))}};
}

void AddTraceFields(const RequestTrace& trace, Http2Fields& fields) {
  fields.emplace_back(kTraceParent, trace.parent_text());
  if (!trace.state().empty()) fields.emplace_back(kTraceState, trace.state());
}

// Returns whether OpenTelemetry's conventions call it the server's fault, and not the client's.
bool IsFaultOfServer(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

}  // namespace

GrpcStream::GrpcStream(std::shared_ptr<Http2StreamHost> host, int32_t id)
    : host_(std::move(host)),
      id_(id),
      held_head_(host_->account()),
      reader_(host_->limits().max_message_bytes, host_->account()) {}

template <typename Work>
void GrpcStream::Post(Work work) noexcept {
  const bool posted = WhereMemoryAllows([&] {
    boost::asio::post(host_->executor(), [self = shared_from_this(), work = std::move(work)] {
      if (self->closed_ || self->host_->session() == nullptr) return;
      if (!WhereMemoryAllows([&] { work(*self); })) return self->host_->Abort();
      self->host_->Flush();
    });
  });
  if (!posted) host_->Abort();
}

void GrpcStream::Read() noexcept {
  Post([](GrpcStream& self) {
    self.wanted_ = true;
    self.Deliver();
  });
}

void GrpcStream::Send(Message message) noexcept {
  Post([message = std::move(message)](GrpcStream& self) { self.Queue(*message); });
}

void GrpcStream::Reply(Message message) noexcept {
  Post([message = std::move(message)](GrpcStream& self) {
    self.Queue(*message);
    self.End(absl::OkStatus());
  });
}

void GrpcStream::Finish(const absl::Status& status) noexcept {
  Post([status](GrpcStream& self) { self.End(status); });
}

void GrpcStream::OnHead(Http2Fields fields, bool is_too_large) {
  int64_t bytes = kCallBytes;
  for (const auto& [name, value] : fields) {
    bytes += static_cast<int64_t>(name.size() + value.size() + sizeof(fields[0]));
  }
  absl::Status status = held_head_.Resize(bytes);
  std::string method, content_type;
  for (const auto& [name, value] : fields) {
    if (name == ":method") method = value;
    if (name == "content-type") content_type = value;
  }
  if (method != "POST") return RefuseHttp(405);
  if (!IsGrpcContent(content_type)) return RefuseHttp(415);
  if (status.ok() && is_too_large) {
    status =
        absl::ResourceExhaustedError("the metadata of the call have more bytes than a call may");
  }
  head_.peer = host_->peer();
  if (status.ok()) status = ReadCallHead(std::move(fields), opened_, head_, encoding_);
  if (!status.ok()) return End(status);
  Start();
}

void GrpcStream::RefuseHttp(int status) {
  const Http2Fields fields = {{":status", absl::StrCat(status)},
                              {"grpc-status", status == 405 ? "12" : "3"}};
  status_ = absl::InvalidArgumentError("no call of gRPC");
  trailers_sent_ = true;
  host_->session()->Respond(id_, fields, false).IgnoreError();
}

void GrpcStream::Start() {
  const RpcMethod* method = host_->routes().Find(head_.path);
  if (method == nullptr) {
    return End(absl::UnimplementedError(absl::StrCat("there is no method ", head_.path)));
  }
  if (host_->is_spare() && !method->is_probe) {
    return End(absl::UnavailableError(
        "the server has as many connections as it may; probes of its health are answered"));
  }
  if (const absl::Status may = host_->routes().Check(head_); !may.ok()) return End(may);
  is_stream_ = method->is_stream;
  tells_log_ = method->tells_log;
  handler_ = method->start(shared_from_this());
}

void GrpcStream::OnData(absl::string_view bytes) {
  if (status_.has_value() || handler_ == nullptr) return;  // refused: the rest is dropped
  unconsumed_ += bytes.size();
  if (message_began_ == Clock::time_point::max()) message_began_ = Clock::now();
  message_bytes_ += static_cast<int64_t>(bytes.size());
  if (const absl::Status read = reader_.Add(bytes); !read.ok()) return End(read);
  if (!reader_.IsInside()) {
    message_began_ = Clock::time_point::max();
    message_bytes_ = 0;
  }
  Deliver();
}

void GrpcStream::OnEnd() {
  ended_ = true;
  if (status_.has_value() || handler_ == nullptr) return;
  if (reader_.IsInside()) {
    return End(absl::InvalidArgumentError("the last message of the call is cut"));
  }
  Deliver();
}

void GrpcStream::Deliver() {
  if (status_.has_value() || inflater_ != nullptr) return;
  if (reader_.HasMessage() && wanted_) {
    wanted_ = false;
    RpcMessage message = reader_.Take();
    if (!message.is_compressed || encoding_.empty() || encoding_ == "identity") {
      if (message.is_compressed) {
        return End(
            absl::InvalidArgumentError("a message is compressed, and grpc-encoding is not "
                                       "there"));
      }
      Hand(std::move(message));
    } else {
      auto inflater = Inflater::Make(encoding_, std::move(message.bytes), MostInflatedBytes());
      if (!inflater.ok()) return End(inflater.status());
      inflater_ = *std::move(inflater);
      inflating_ = std::move(message);
      Inflate();
    }
  }
  // Messages that wait for the handler are not consumed: the client sends no more than a window of
  // them.
  if (!reader_.HasMessage() && unconsumed_ > 0) {
    host_->session()->Consume(id_, std::exchange(unconsumed_, 0));
  }
  if (ended_ && wanted_ && !reader_.HasMessage() && inflater_ == nullptr && !status_.has_value() &&
      !std::exchange(told_end_, true)) {
    if (!is_stream_ && !had_message_) {
      return End(absl::InvalidArgumentError("the call has no message"));
    }
    handler_->OnHalfClose();
  }
}

int64_t GrpcStream::MostInflatedBytes() const {
  const auto& most = host_->limits().max_inflated_bytes;
  return most == nullptr ? reader_.max_bytes() : std::min(reader_.max_bytes(), most());
}

void GrpcStream::Inflate() {
  if (status_.has_value()) return inflater_.reset();
  const absl::StatusOr<bool> whole = inflater_->Step(kInflatedBytes);
  absl::Status status = whole.status();
  if (status.ok()) status = inflating_.held.Resize(inflater_->bytes_taken() + kOverhead);
  if (!status.ok()) {
    inflater_ = nullptr;
    return End(status);
  }
  // Behind whatever else waits for the thread.
  if (!*whole) return Post([](GrpcStream& self) { self.Inflate(); });
  inflating_.bytes = inflater_->Take();
  inflater_ = nullptr;
  inflating_.is_compressed = false;
  Hand(std::exchange(inflating_, RpcMessage()));
  Deliver();
}

void GrpcStream::Hand(RpcMessage message) {
  had_message_ = true;
  // The message as it is parsed takes its bytes again.
  const absl::Status held = message.held.Resize(2 * message.held.bytes());
  if (!held.ok()) return End(held);
  handler_->OnMessage(std::move(message));
}

void GrpcStream::Queue(const google::protobuf::MessageLite& message) {
  if (status_.has_value()) return;
  const size_t size = message.ByteSizeLong();
  if (size > std::numeric_limits<int32_t>::max()) {
    return End(absl::ResourceExhaustedError(absl::StrCat(
        "the answer has ", size, " bytes, a message holds ", std::numeric_limits<int32_t>::max())));
  }
  Outgoing answer{.held = HeldBytes(host_->account())};
  const absl::Status held = answer.held.Resize(static_cast<int64_t>(size) + kOverhead);
  if (!held.ok()) {
    return End(absl::ResourceExhaustedError(absl::StrCat("the answer: ", held.message())));
  }
  answer.bytes.resize(kPrefixBytes + size);
  auto* bytes = reinterpret_cast<uint8_t*>(answer.bytes.data());
  bytes[0] = 0;
  for (int i = 0; i < 4; ++i) bytes[1 + i] = static_cast<uint8_t>(size >> (24 - 8 * i));
  message.SerializeWithCachedSizesToArray(bytes + kPrefixBytes);
  if (outgoing_.empty()) outgoing_moved_ = outgoing_began_ = Clock::now();
  outgoing_.push_back(std::move(answer));
  CountUntaken();
  Respond();
}

void GrpcStream::CountUntaken() {
  const bool is_untaken = !outgoing_.empty();
  if (std::exchange(is_untaken_, is_untaken) == is_untaken) return;
  host_->CountUntaken(is_untaken ? 1 : -1);
}

void GrpcStream::Respond() {
  if (std::exchange(responded_, true)) return host_->session()->Resume(id_);
  const Http2Fields& more = host_->limits().head_fields;
  if (head_.trace == nullptr && more.empty()) {
    return host_->session()->Respond(id_, ResponseFields(), true).IgnoreError();
  }
  Http2Fields fields = ResponseFields();
  if (head_.trace != nullptr) AddTraceFields(*head_.trace, fields);
  fields.insert(fields.end(), more.begin(), more.end());
  host_->session()->Respond(id_, fields, true).IgnoreError();
}

void GrpcStream::Tell(const absl::Status& status) const {
  const auto& on_end = host_->limits().on_end;
  if (on_end == nullptr || (tells_log_ && had_message_)) return;
  WhereMemoryAllows([&] { on_end(head_, status, Clock::now() - opened_); });
}

void GrpcStream::EndTrace(const absl::Status& status) const {
  if (head_.trace == nullptr) return;
  const int code = ErrorRowOf(status.code()).grpc;
  WhereMemoryAllows([&] {
    head_.trace->AddAttribute({"rpc.grpc.status_code", static_cast<int64_t>(code)});
  });
  head_.trace->End(IsFaultOfServer(status.code()) ? status.message() : "");
}

void GrpcStream::End(const absl::Status& status) {
  if (status_.has_value()) return;
  status_ = status;
  EndTrace(status);
  Tell(status);
  if (!status.ok()) {  // the unsent answers never will be sent
    while (outgoing_.size() > (sent_ > 0 ? 1 : 0)) outgoing_.pop_back();
    CountUntaken();
  }
  if (responded_) return host_->session()->Resume(id_);
  trailers_sent_ = true;
  Http2Fields fields = {{":status", "200"}, {"content-type", kContentType}};
  if (head_.trace != nullptr) AddTraceFields(*head_.trace, fields);
  const Http2Fields& more = host_->limits().head_fields;
  fields.insert(fields.end(), more.begin(), more.end());
  for (auto& field : EndFields()) fields.push_back(std::move(field));
  if (status.code() == absl::StatusCode::kUnimplemented) {
    fields.emplace_back("grpc-accept-encoding", kGrpcEncodings);
  }
  host_->session()->Respond(id_, fields, false).IgnoreError();
}

Http2Stream::Produced GrpcStream::Produce(char* to, size_t size) {
  Produced produced;
  while (!outgoing_.empty() && produced.bytes < size) {
    Outgoing& answer = outgoing_.front();
    const size_t more = std::min(size - produced.bytes, answer.bytes.size() - sent_);
    std::memcpy(to + produced.bytes, answer.bytes.data() + sent_, more);
    produced.bytes += more;
    sent_ += more;
    if (sent_ < answer.bytes.size()) {
      outgoing_moved_ = Clock::now();
      break;
    }
    outgoing_.pop_front();
    sent_ = 0;
    if (!outgoing_.empty()) outgoing_moved_ = outgoing_began_ = Clock::now();
    if (handler_ != nullptr) handler_->OnSent();
  }
  if (!outgoing_.empty()) return produced;
  CountUntaken();
  (status_.has_value() ? produced.ends : produced.waits) = true;
  return produced;
}

Http2Fields GrpcStream::Trailers() {
  trailers_sent_ = true;
  return EndFields();
}

Http2Fields GrpcStream::EndFields() const {
  Http2Fields fields = StatusFields(*status_);
  const auto& add = host_->limits().add_trailers;
  if (add != nullptr) WhereMemoryAllows([&] { add(head_, fields); });
  return fields;
}

void GrpcStream::OnClose() {
  if (std::exchange(closed_, true)) return;
  if (!status_.has_value()) EndTrace(absl::CancelledError("the client has left"));
  // The rest is not read.
  const bool cut = !trailers_sent_ || !outgoing_.empty();
  outgoing_.clear();
  CountUntaken();
  inflater_ = nullptr;
  const std::shared_ptr<RpcHandler> handler = std::move(handler_);
  if (handler == nullptr) return;
  if (cut) handler->OnCancel();
  host_->WhenSent([handler] { handler->OnDone(); });
}

void GrpcStream::CheckTime(Clock::time_point now) {
  const RpcLimits& limits = host_->limits();
  const auto passed = [&](Clock::time_point since, std::chrono::nanoseconds time, int64_t bytes) {
    return since != Clock::time_point::max() &&
           now - since > time + std::chrono::seconds(bytes / limits.least_bytes_per_second);
  };
  if (!outgoing_.empty() && (passed(outgoing_moved_, limits.write_timeout, 0) ||
                             passed(outgoing_began_, limits.write_timeout,
                                    static_cast<int64_t>(outgoing_.front().bytes.size())))) {
    // Its client does not read: a status would not be read either.
    return host_->session()->Reset(id_, NGHTTP2_CANCEL);
  }
  if (status_.has_value()) {
    // The answer's end waits for a client that takes nothing, or does not end its half.
    return;
  }
  // Whole messages wait for the handler, and hold up the ones after them.
  if (reader_.HasMessage() || inflater_ != nullptr) message_began_ = now;
  const bool waits_for_only = !is_stream_ && !had_message_ && inflater_ == nullptr;
  if ((reader_.IsInside() && passed(message_began_, limits.read_timeout, message_bytes_)) ||
      (waits_for_only && passed(opened_, limits.read_timeout, message_bytes_))) {
    End(absl::DeadlineExceededError(
        absl::StrCat("the message has not come: ", message_bytes_, " bytes of it did")));
  }
}

}  // namespace reprise

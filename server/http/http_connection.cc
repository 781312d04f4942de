#include "server/http/http_connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/mutex.h"
#include "server/transport/inflate.h"

namespace reprise {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using std::chrono::seconds;

// Clients keep a connection for their next request.
constexpr seconds kIdleTime(75);
// A header must take less, counted from its first byte.
constexpr seconds kHeaderTime(10);
// Each step of a connection above the limit: probes wait for the few places that there are.
constexpr std::chrono::milliseconds kSpareTime(100);
// After its connection, or the answer before it, a request may be on its way within this time.
constexpr seconds kAskingTime(1);
// A body may take this time, and a second for each kLeastBytesPerSecond of its bytes.
constexpr seconds kMoveTime(30);
// The piece that is decompressed at a time, in some milliseconds.
constexpr int64_t kInflatedBytes = 1 << 20;

constexpr size_t kFirstRead = 4 << 10;
constexpr size_t kMostRead = 64 << 10;
constexpr absl::string_view kHeaderEnd = "\r\n\r\n";

constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";

// Returns whether the bytes of the client are not HTTP; otherwise it is done, disconnected or
// silent.
bool IsMalformed(boost::system::error_code error) {
  return error.category() == make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

absl::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

// Holds the connection until it is answered.
class HttpConnection::Exchange final : public HttpExchange,
                                       public ClientWatcher,
                                       public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(HttpRequest request, std::shared_ptr<HttpConnection> connection)
      : HttpExchange(std::move(request)), connection_(std::move(connection)) {}

  void Answer(std::function<HttpReply()> make) noexcept override {
    {
      MutexLock lock(mutex_);
      leave_ = nullptr;
    }
    const std::shared_ptr<HttpConnection> connection = std::move(connection_);
    const bool posted = WhereMemoryAllows([&] {
      asio::post(connection->stream_.get_executor(), [connection, make = std::move(make),
                                                      more = MoreFields(*connection), told = told(),
                                                      key = KeyName(), trace = trace()] {
        HttpReply reply;
        const bool made = WhereMemoryAllows([&] {
          reply = make();
          reply.fields.insert(reply.fields.end(), more.begin(), more.end());
        });
        if (made) {
          connection->told_ = told;
          connection->key_ = key;
          connection->trace_ = trace;
          return connection->Write(std::move(reply));
        }
        connection->Refuse(503, "the answer: the system has not the memory that it needs");
      });
    });
    if (!posted) connection->stream_.Abort();
  }

  void Begin(HttpReply head) noexcept override {
    const auto self = weak_from_this();
    const bool whole = WhereMemoryAllows([&] {
      const HttpFields more = MoreFields(*connection_);
      head.fields.insert(head.fields.end(), more.begin(), more.end());
    });
    if (!whole) return connection_->stream_.Abort();
    Post(connection_, [head = std::move(head), self, told = told(),
                       trace = trace()](HttpConnection& connection) {
      connection.told_ = told;
      connection.trace_ = trace;
      connection.BeginPieces(head, self);
    });
  }

  void Send(std::string piece, bool last, std::function<void()> sent) noexcept override {
    std::shared_ptr<HttpConnection> connection = connection_;
    if (last) {
      {
        MutexLock lock(mutex_);
        leave_ = nullptr;
      }
      connection_ = nullptr;
    }
    Post(connection,
         [piece = std::move(piece), last, sent = std::move(sent)](HttpConnection& of) mutable {
           of.QueuePiece(std::move(piece), last, std::move(sent));
         });
  }

  void OnLeave(std::function<void()> leave) override {
    {
      MutexLock lock(mutex_);
      if (!left_) {
        leave_ = std::move(leave);
        return;
      }
    }
    leave();
  }

  void OnClientLeft() override {
    std::function<void()> leave;
    {
      MutexLock lock(mutex_);
      left_ = true;
      leave.swap(leave_);
    }
    if (leave != nullptr) leave();
  }

 private:
  // Returns the headers that the answer has besides its own.
  HttpFields MoreFields(const HttpConnection& connection) const {
    HttpFields fields = reply_fields();
    const auto& add = connection.context_.options.add_fields;
    if (add != nullptr) add(request(), fields);
    return fields;
  }
  std::string KeyName() const { return key() == nullptr ? "" : key()->name(); }

  template <typename Work>
  static void Post(const std::shared_ptr<HttpConnection>& connection, Work work) noexcept {
    const bool posted = WhereMemoryAllows([&] {
      asio::post(connection->stream_.get_executor(),
                 [connection, work = std::move(work)]() mutable { work(*connection); });
    });
    if (!posted) connection->stream_.Abort();
  }

  std::shared_ptr<HttpConnection> connection_;  // null once answered
  Mutex mutex_;
  std::function<void()> leave_ GUARDED_BY(mutex_);
  bool left_ GUARDED_BY(mutex_) = false;
};

HttpConnection::HttpConnection(ClientStream stream, HttpConnectionContext& context)
    : context_(context),
      stream_(std::move(stream)),
      account_(context.options.account != nullptr ? context.options.account->Open() : nullptr),
      held_body_(account_),
      held_reply_(account_) {}

HttpConnection::~HttpConnection() {
  {
    MutexLock lock(context_.mutex);
    context_.connections.erase(this);
  }
  EndExchange();
}

void HttpConnection::EndExchange() {
  if (const auto trace = std::move(trace_); trace != nullptr) trace->End(trace_error_);
  if (std::exchange(open_, false)) context_.open.End();
}

void HttpConnection::Start() {
  {
    MutexLock lock(context_.mutex);
    context_.connections.emplace(this, weak_from_this());
  }
  ReadRequest();
}

void HttpConnection::LeaveIfIdle() {
  if (!is_idle_) return;
  // A client that has just connected is about to ask something: it is answered, and the last time.
  if (std::chrono::steady_clock::now() - idle_since_ < kAskingTime) {
    return stream_.ExpireAfter(kAskingTime);
  }
  // The step that reads goes on until the client closes its side as well.
  stream_.CloseSending();
}

void HttpConnection::ReadRequest() {
  held_body_.Release();
  reader_.reset();
  idle_since_ = std::chrono::steady_clock::now();
  parser_.emplace();
  parser_->header_limit(kMostHeaderBytes);
  parser_->body_limit(std::numeric_limits<uint64_t>::max());  // ours is with numbers
  stream_.ExpireAfter(stream_.is_spare() ? kSpareTime : kIdleTime);
  ReadFirst();
}

void HttpConnection::ReadFirst() {
  const auto is_line_end = [](char c) { return c == '\r' || c == '\n'; };
  const auto* bytes = static_cast<const char*>(buffer_.data().data());
  buffer_.consume(std::find_if_not(bytes, bytes + buffer_.size(), is_line_end) - bytes);
  is_idle_ = buffer_.size() == 0;
  if (!is_idle_) return ReadHeader();
  stream_.async_read_some(buffer_.prepare(kFirstRead),
                          [self = shared_from_this()](Error error, size_t bytes) {
                            if (error) return;
                            self->buffer_.commit(bytes);
                            self->ReadFirst();
                          });
}

void HttpConnection::ReadHeader() {
  began_ = std::chrono::steady_clock::now();
  method_.clear();
  key_.clear();
  bytes_in_ = 0;
  told_ = false;
  stream_.ExpireAfter(stream_.is_spare() ? kSpareTime : kHeaderTime);
  ReadMoreOfHeader(0);
}

void HttpConnection::ReadMoreOfHeader(size_t searched) {
  const absl::string_view bytes(static_cast<const char*>(buffer_.data().data()), buffer_.size());
  const size_t end = bytes.find(kHeaderEnd, searched);
  if (end != absl::string_view::npos) return ParseHeader(end + kHeaderEnd.size());
  if (bytes.size() >= kMostHeaderBytes) return OnHeader(http::error::header_limit);
  // Bytes that no client sends are refused as they come, not once they are long enough.
  if (!absl::ascii_isprint(static_cast<unsigned char>(bytes[0]))) {
    return OnHeader(http::error::bad_method);
  }
  for (size_t at = bytes.find('\n', searched); at < bytes.size(); at = bytes.find('\n', at + 1)) {
    if (at == 0 || bytes[at - 1] != '\r') return OnHeader(http::error::bad_line_ending);
  }
  stream_.async_read_some(
      buffer_.prepare(kFirstRead),
      [self = shared_from_this(), size = bytes.size()](Error error, size_t read) {
        if (error) return;
        self->buffer_.commit(read);
        // The end may lie across both reads.
        self->ReadMoreOfHeader(size - std::min(size, kHeaderEnd.size() - 1));
      });
}

void HttpConnection::ParseHeader(size_t bytes) {
  const absl::string_view header(static_cast<const char*>(buffer_.data().data()), bytes);
  is_head_ = absl::StartsWith(header, "HEAD ");
  path_ = RequestPath();
  keep_ = false;
  version_ = 11;
  wants_gzip_ = false;
  if (absl::StrContains(header, "\n ") || absl::StrContains(header, "\n\t")) {
    return Refuse(400, "a header field is folded over lines, which RFC 9112 forbids");
  }
  Error error;
  const size_t parsed = parser_->put(asio::buffer(header.data(), header.size()), error);
  buffer_.consume(parsed);
  OnHeader(error);
}

void HttpConnection::OnHeader(Error error) {
  is_head_ = false;
  keep_ = false;
  version_ = 11;
  if (error == http::error::header_limit) {
    return Refuse(431, absl::StrCat("the header has more than ", kMostHeaderBytes, " bytes"));
  }
  if (IsMalformed(error)) {
    return Refuse(400, absl::StrCat("not a request of HTTP/1.1: ", error.message()));
  }
  if (error) return;
  const auto& header = parser_->get();
  auto path = RequestPath::Parse(View(header.target()));
  if (!path.ok()) return Refuse(400, std::string(path.status().message()));
  path_ = *std::move(path);
  method_ = std::string(header.method_string());
  is_head_ = header.method() == http::verb::head;
  version_ = header.version();
  wants_gzip_ = AcceptsGzip(View(header[http::field::accept_encoding]));
  if (RefuseHeader()) return;
  body_began_ = std::chrono::steady_clock::now();
  const auto length = parser_->content_length();
  const int64_t known = length.has_value() ? static_cast<int64_t>(*length) : 0;
  if (known < 0 || known > context_.options.max_body_bytes) {
    return Refuse(413, absl::StrCat("the body has ", *length, " bytes, a request at most ",
                                    context_.options.max_body_bytes));
  }
  const absl::string_view transfer = View(header[http::field::transfer_encoding]);
  if (!transfer.empty() && !absl::EqualsIgnoreCase(transfer, "chunked")) {
    return Refuse(501, absl::StrCat("Transfer-Encoding is ", transfer, ", chunked is supported"));
  }
  if (header.count(http::field::content_encoding) > 1) {
    return Refuse(415, "Content-Encoding is there more than once, one is supported");
  }
  reader_.emplace(transfer.empty() ? std::optional<uint64_t>(known) : std::nullopt);
  read_bytes_ = kFirstRead;
  // HTTP/1.0 does not know the answer to it.
  if (version_ < 11 || !absl::EqualsIgnoreCase(View(header[http::field::expect]), "100-continue")) {
    return ReadBody();
  }
  stream_.ExpireAfter(kMoveTime);
  asio::async_write(stream_, asio::buffer(kContinue, sizeof(kContinue) - 1),
                    [self = shared_from_this()](Error failed, size_t) {
                      if (!failed) self->ReadBody();
                    });
}

bool HttpConnection::RefuseHeader() {
  const auto& header = parser_->get();
  const size_t hosts = header.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && version_ >= 11)) {
    Refuse(400, absl::StrCat("a request of HTTP/1.1 has one field Host, this one has ", hosts));
    return true;
  }
  if (version_ < 11 && header.count(http::field::transfer_encoding) > 0) {
    Refuse(400, "a request of HTTP/1.0 has no Transfer-Encoding");
    return true;
  }
  // Two lengths of one body: a proxy in front may have taken the other one.
  if (header.count(http::field::content_length) + header.count(http::field::transfer_encoding) >
      1) {
    Refuse(400, "the body has more than one Content-Length or Transfer-Encoding");
    return true;
  }
  return false;
}

void HttpConnection::ReadBody() {
  if (!ReadBuffered()) return;
  if (reader_->IsWhole()) {
    body_ = reader_->TakeBody();
    reader_.reset();
    // The memory that a large body was read by is not kept for the next request.
    if (read_bytes_ > kFirstRead && buffer_.size() == 0) buffer_.shrink_to_fit();
    return DecodeBody();
  }
  stream_.ExpireAt(body_began_ + kMoveTime +
                   seconds(static_cast<int64_t>(reader_->body().size()) / kLeastBytesPerSecond));
  stream_.async_read_some(buffer_.prepare(read_bytes_),
                          [self = shared_from_this()](Error error, size_t read) {
                            if (error) return;
                            self->buffer_.commit(read);
                            // A client that fills one read has more to send.
                            if (read == self->read_bytes_) {
                              self->read_bytes_ = std::min(2 * read, kMostRead);
                            }
                            self->ReadBody();
                          });
}

bool HttpConnection::ReadBuffered() {
  const absl::string_view bytes(static_cast<const char*>(buffer_.data().data()), buffer_.size());
  const absl::StatusOr<size_t> taken = reader_->Add(bytes);
  if (!taken.ok()) {
    Refuse(400, absl::StrCat("the body cannot be read: ", taken.status().message()));
    return false;
  }
  buffer_.consume(*taken);
  const auto read = static_cast<int64_t>(reader_->body().size());
  if (read > context_.options.max_body_bytes) {
    Refuse(413, absl::StrCat("the body has more than ", context_.options.max_body_bytes,
                             " bytes, the most of a request"));
    return false;
  }
  return TakeBody(read);
}

bool HttpConnection::NeverFits(int64_t bytes) const {
  // A connection within the limit has more room than a spare one.
  if (context_.options.account == nullptr || stream_.is_spare()) return false;
  const ByteLimits& limits = context_.options.account->limits();
  return (limits.max_bytes > 0 && bytes > limits.max_bytes) ||
         (limits.max_connection_bytes > 0 && bytes > limits.max_connection_bytes);
}

bool HttpConnection::TakeBody(int64_t bytes) {
  if (bytes <= held_body_.bytes()) return true;
  const absl::Status held = held_body_.Resize(bytes);
  if (held.ok()) return true;
  Refuse(NeverFits(bytes) ? 413 : 429,
         absl::StrCat("the body has ", bytes, " bytes: ", held.message()));
  return false;
}

void HttpConnection::DecodeBody() {
  const absl::string_view encoding = View(parser_->get()[http::field::content_encoding]);
  if (encoding.empty() || absl::EqualsIgnoreCase(encoding, "identity")) return Handle();
  auto inflater = Inflater::Make(encoding, std::move(body_), MostInflatedBytes());
  if (!inflater.ok()) return RefuseBody(inflater.status());
  inflater_ = *std::move(inflater);
  stream_.ExpireNever();
  InflateBody();
}

int64_t HttpConnection::MostInflatedBytes() const {
  const int64_t most = context_.options.max_body_bytes;
  if (context_.options.max_inflated_bytes == nullptr) return most;
  return std::min(most, context_.options.max_inflated_bytes(path_));
}

void HttpConnection::InflateBody() {
  const absl::StatusOr<bool> whole = inflater_->Step(kInflatedBytes);
  if (!whole.ok()) return RefuseBody(whole.status());
  if (!TakeBody(inflater_->bytes_taken())) return;
  if (!*whole) {
    // Behind whatever else waits for the thread.
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->InflateBody(); });
    return;
  }
  body_ = inflater_->Take();
  inflater_ = nullptr;
  Handle();
}

void HttpConnection::RefuseBody(const absl::Status& why) {
  inflater_ = nullptr;
  Refuse(why.code() == absl::StatusCode::kUnimplemented       ? 415
         : why.code() == absl::StatusCode::kResourceExhausted ? 413
                                                              : 400,
         std::string(why.message()));
}

void HttpConnection::Handle() {
  auto& message = parser_->get();
  keep_ = message.keep_alive();
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.path = path_;
  for (const auto& field : message) {
    request.fields.emplace_back(absl::AsciiStrToLower(View(field.name_string())),
                                std::string(View(field.value())));
  }
  bytes_in_ = static_cast<int64_t>(body_.size());
  request.body = std::move(body_);
  request.peer = stream_.peer();
  request.is_spare = stream_.is_spare();
  const auto exchange = std::make_shared<Exchange>(std::move(request), shared_from_this());
  stream_.ExpireNever();
  context_.open.Begin();
  open_ = true;
  context_.handler(exchange);
  stream_.Watch(std::shared_ptr<ClientStream>(shared_from_this(), &stream_), exchange);
}

}  // namespace reprise

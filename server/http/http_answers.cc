// The second half of a connection: answers, whole and in pieces, and what comes after them.

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "server/http/http_connection.h"
#include "server/transport/gzip.h"

namespace reprise {
namespace {

constexpr std::chrono::seconds kLingerTime(2);
// Answers of this size are not counted: there is always room to say that there is none.
constexpr int64_t kFreeBytes = 4 << 10;
// Smaller answers fit a packet as they are.
constexpr size_t kLeastCompressed = 1400;

}  // namespace

void HttpConnection::Tell(const HttpReply& reply) {
  if (trace_ != nullptr) {
    trace_error_ = reply.status >= 500 ? reply.why : "";
    WhereMemoryAllows([&] {
      trace_->AddAttribute({"http.response.status_code", static_cast<int64_t>(reply.status)});
    });
  }
  if (told_ || context_.options.on_answer == nullptr) return;
  WhereMemoryAllows([&] {
    context_.options.on_answer(
        {.method = method_,
         .path = path_.Text(),
         .status = reply.status,
         .key = key_,
         .bytes_in = bytes_in_,
         .bytes_out = static_cast<int64_t>(reply.body.size()),
         .total_ns = (std::chrono::steady_clock::now() - began_) / std::chrono::nanoseconds(1),
         .why = reply.why});
  });
}

void HttpConnection::Write(HttpReply reply) {
  // The request is used up. A client that has its answer finds this room when it asks again.
  held_body_.Release();
  Compress(reply);
  const auto bytes = static_cast<int64_t>(reply.body.size());
  if (const absl::Status held = held_reply_.Resize(bytes > kFreeBytes ? bytes : 0); !held.ok()) {
    return Refuse(NeverFits(bytes) ? 400 : 429, absl::StrCat("the answer: ", held.message()));
  }
  Tell(reply);
  Reply& answer = reply_.emplace(static_cast<boost::beast::http::status>(reply.status), version_);
  answer.set(boost::beast::http::field::server, "reprise");
  answer.set(boost::beast::http::field::content_type, reply.content_type);
  for (const auto& [name, value] : reply.fields) answer.insert(name, value);
  keep_ = keep_ && !context_.draining && !stream_.is_spare();
  answer.keep_alive(keep_);
  answer.content_length(reply.body.size());
  if (!is_head_) answer.body() = std::move(reply.body);
  write_end_ = std::chrono::steady_clock::now() + context_.options.write_timeout +
               std::chrono::seconds(bytes / kLeastBytesPerSecond);
  writer_.emplace(answer);
  WriteSome();
}

void HttpConnection::WriteSome() {
  const auto still = std::chrono::steady_clock::now() + context_.options.write_timeout;
  stream_.ExpireAt(std::min(still, write_end_));
  boost::beast::http::async_write_some(stream_, *writer_,
                                       [self = shared_from_this()](Error error, size_t) {
                                         if (error || self->writer_->is_done())
                                           return self->OnWritten(error);
                                         self->WriteSome();
                                       });
}

void HttpConnection::Compress(HttpReply& reply) const {
  if (!wants_gzip_ || !reply.compress || reply.body.size() < kLeastCompressed) return;
  std::string smaller = Gzip(reply.body);
  if (smaller.empty() || smaller.size() >= reply.body.size()) return;
  reply.body = std::move(smaller);
  reply.fields.emplace_back("Content-Encoding", "gzip");
  reply.fields.emplace_back("Vary", "Accept-Encoding");
}

void HttpConnection::BeginPieces(const HttpReply& head, std::weak_ptr<ClientWatcher> watcher) {
  watcher_ = std::move(watcher);
  Tell(head);
  // Before 1.1 the end of the connection is the end of the body.
  chunked_ = version_ >= 11;
  keep_ = keep_ && chunked_ && !context_.draining;
  std::string text = absl::StrCat("HTTP/1.1 ", head.status, " OK\r\nServer: reprise\r\n",
                                  "Content-Type: ", head.content_type, "\r\n",
                                  "Connection: ", keep_ ? "keep-alive" : "close", "\r\n");
  for (const auto& [name, value] : head.fields) absl::StrAppend(&text, name, ": ", value, "\r\n");
  absl::StrAppend(&text, chunked_ ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
  lost_ = false;
  pieces_.push_back({.bytes = std::move(text)});
  WritePieces();
}

void HttpConnection::QueuePiece(std::string piece, bool last, std::function<void()> sent) {
  if (chunked_ && !piece.empty()) {
    piece = absl::StrCat(absl::Hex(piece.size()), "\r\n", piece, "\r\n");
  }
  if (chunked_ && last) absl::StrAppend(&piece, "0\r\n\r\n");
  pieces_.push_back({.bytes = std::move(piece), .last = last, .sent = std::move(sent)});
  if (lost_) return OnPiece(boost::asio::error::operation_aborted);
  WritePieces();
}

void HttpConnection::WritePieces() {
  if (writes_piece_ || pieces_.empty()) return;
  writes_piece_ = true;
  const std::string& bytes = pieces_.front().bytes;
  stream_.ExpireAfter(
      context_.options.write_timeout +
      std::chrono::seconds(static_cast<int64_t>(bytes.size()) / kLeastBytesPerSecond));
  boost::asio::async_write(
      stream_, boost::asio::buffer(bytes),
      [self = shared_from_this()](Error error, size_t) { self->OnPiece(error); });
}

void HttpConnection::OnPiece(Error error) {
  writes_piece_ = false;
  const Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  if (piece.sent != nullptr) piece.sent();
  if (error && !std::exchange(lost_, true)) {
    if (const std::shared_ptr<ClientWatcher> watcher = watcher_.lock()) watcher->OnClientLeft();
  }
  if (piece.last) return OnWritten(error);
  if (lost_ && !pieces_.empty()) return OnPiece(boost::asio::error::operation_aborted);
  if (pieces_.empty()) stream_.ExpireNever();
  if (!lost_) WritePieces();
}

void HttpConnection::Refuse(int status, const std::string& why) {
  keep_ = false;
  Write(ErrorReply(path_, status, why));
}

void HttpConnection::OnWritten(Error error) {
  writer_.reset();
  reply_.reset();  // an empty one in its place would keep the memory of the text
  held_reply_.Release();
  EndExchange();
  if (error) return;
  if (keep_) return ReadRequest();
  Linger();
}

void HttpConnection::Linger() {
  stream_.CloseSending();
  stream_.ExpireAfter(kLingerTime);
  Discard();
}

void HttpConnection::Discard() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(size_t{64} << 10),
                          [self = shared_from_this()](Error error, size_t) {
                            if (!error) self->Discard();
                          });
}

}  // namespace reprise

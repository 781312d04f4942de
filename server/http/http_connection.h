// HttpConnection: one client's connection, from its first byte to its last.
//
// Reads a request, hands it to the handler, writes the answer, reads the next. Each step is
// asynchronous and has a deadline of its own: a header, a body and an answer must move on, a
// request that is worked on may take as long as it likes.
//
// Ownership: kept alive by the step under way, and by the exchange until it is answered.
// Threads:   all steps run on the connection's strand.
#pragma once

#include <atomic>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/mutex.h"
#include "server/http/body_reader.h"
#include "server/http/http_server.h"
#include "server/transport/byte_account.h"
#include "server/transport/client_stream.h"
#include "server/transport/inflate.h"
#include "server/transport/open_answers.h"

namespace reprise {

class HttpConnection;

// State that all connections of a server share; outlives them.
struct HttpConnectionContext {
  HttpConnectionContext(const HttpServerOptions& of, HttpHandler by)
      : options(of), handler(std::move(by)) {}

  const HttpServerOptions options;
  const HttpHandler handler;
  OpenAnswers open;
  std::atomic<bool> draining{false};  // connections end with the answer under way
  Mutex mutex;
  std::map<const HttpConnection*, std::weak_ptr<HttpConnection>> connections GUARDED_BY(mutex);
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(ClientStream stream, HttpConnectionContext& context);
  ~HttpConnection();

  // Once, on the strand: begins to read the client's requests.
  void Start();
  ClientStream::executor_type executor() { return stream_.get_executor(); }
  // On the strand: ends the connection if it waits for the client's next request, at once where
  // none may be on its way.
  void LeaveIfIdle();

 private:
  class Exchange;
  using Error = boost::system::error_code;
  using Reply = boost::beast::http::response<boost::beast::http::string_body>;
  // Bodies and answers may take a second for each of these.
  static constexpr int64_t kLeastBytesPerSecond = 64 << 10;
  static constexpr size_t kMostHeaderBytes = size_t{64} << 10;
  static constexpr size_t kMostBufferedBytes = 2 * kMostHeaderBytes;

  void ReadRequest();
  // Reads the first bytes of a request, past the empty lines that clients may send in front of it.
  void ReadFirst();
  void ReadHeader();
  // `searched`: the end is not among the first bytes of the buffer, which are this many.
  void ReadMoreOfHeader(size_t searched);
  // Parses the header, which is whole.
  void ParseHeader(size_t bytes);
  void OnHeader(Error error);
  // Answers a header that HTTP/1.1 does not allow. True: answered.
  bool RefuseHeader();
  void ReadBody();
  // Takes the part of the body that is in the buffer. False: answered.
  bool ReadBuffered();
  // Returns whether a body or an answer is larger than the account of a connection that holds
  // nothing else: no later attempt would change that.
  bool NeverFits(int64_t bytes) const;
  // Takes the size of the body so far from the account. False: answered.
  bool TakeBody(int64_t bytes);
  // Undoes the body's Content-Encoding, a part at a time, and handles the request.
  void DecodeBody();
  void InflateBody();
  int64_t MostInflatedBytes() const;
  void RefuseBody(const absl::Status& why);
  void Handle();
  void EndExchange();
  // Tells the log of the request that is answered with `reply`.
  void Tell(const HttpReply& reply);
  void Write(HttpReply reply);
  // Sends a reply in pieces: its header, then its pieces, in order.
  void BeginPieces(const HttpReply& head, std::weak_ptr<ClientWatcher> watcher);
  void QueuePiece(std::string piece, bool last, std::function<void()> sent);
  void WritePieces();
  void OnPiece(Error error);
  // Writes as much as possible, and goes on while the client reads.
  void WriteSome();
  // Compresses the reply where the client accepts that and it pays.
  void Compress(HttpReply& reply) const;
  // Answers without a handler, and closes: the rest of the request is not read.
  void Refuse(int status, const std::string& why);
  void OnWritten(Error error);
  // Ends our side and reads the rest that the client still sends, for a while: closing at once
  // would drop the answer with it.
  void Linger();
  void Discard();

  HttpConnectionContext& context_;
  ClientStream stream_;
  const std::shared_ptr<ConnectionBytes> account_;  // null: nothing is counted
  // Bytes that are read and not yet parsed.
  boost::beast::flat_buffer buffer_{kMostBufferedBytes};
  size_t read_bytes_ = 0;  // the size of the next read of a body
  // It parses headers alone.
  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> parser_;
  RequestPath path_;  // "/" until the header is read
  std::optional<BodyReader> reader_;
  std::string body_;                             // once it is whole
  std::chrono::steady_clock::time_point began_;  // the header's first bytes came
  std::chrono::steady_clock::time_point body_began_;
  std::string method_;                   // the request's, once its header is read
  std::string key_;                      // the name of its key
  std::shared_ptr<RequestTrace> trace_;  // the trace of the request in work; null: none
  std::string trace_error_;
  int64_t bytes_in_ = 0;
  bool told_ = false;  // the log knows of the request
  HeldBytes held_body_;
  HeldBytes held_reply_;
  bool wants_gzip_ = false;
  std::unique_ptr<Inflater> inflater_;
  // A piece of a reply that waits to be written, or is being written.
  struct Piece {
    std::string bytes;
    bool last = false;
    std::function<void()> sent;
  };

  std::optional<Reply> reply_;  // while it is written
  std::deque<Piece> pieces_;
  std::weak_ptr<ClientWatcher> watcher_;  // told where a piece cannot be written
  bool chunked_ = false;                  // pieces have their sizes in front
  bool writes_piece_ = false;
  bool lost_ = false;  // a piece was not written: none will be
  std::optional<boost::beast::http::response_serializer<boost::beast::http::string_body>> writer_;
  std::chrono::steady_clock::time_point write_end_;  // however steadily the client reads
  bool is_idle_ = false;                             // it waits for the first byte of a request
  std::chrono::steady_clock::time_point idle_since_;
  bool keep_ = false;  // the connection, after the answer
  bool is_head_ = false;
  unsigned version_ = 11;
  bool open_ = false;  // an exchange is
};

}  // namespace reprise

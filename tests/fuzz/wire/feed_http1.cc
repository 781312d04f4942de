#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <memory>
#include <utility>

#include "server/http/http_connection.h"
#include "tests/fuzz/wire/feed.h"

namespace reprise {
namespace {

constexpr int64_t kMostBodyBytes = 2 << 20;  // more than is decompressed at a time
constexpr int64_t kAccountBytes = 8 << 20, kSpareAccountBytes = 32 << 10;
constexpr int64_t kSmallBytes = 100;  // that a compressed body may have at "/small"

HttpServerOptions ConnectionOptions(const ByteAccount& account) {
  return {.max_body_bytes = kMostBodyBytes,
          .max_inflated_bytes =
              [](const RequestPath& path) {
                return path.Text() == "/small" ? kSmallBytes : kMostBodyBytes;
              },
          .account = &account};
}

void Echo(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  exchange->OnLeave([] {});
  exchange->AddReplyField("x-agent", std::string(request.Field("user-agent")));
  if (request.path.Text() == "/pieces") {
    exchange->Begin({.content_type = "text/event-stream"});
    exchange->Send("", false, nullptr);
    // The next piece is made once this one has left, as a streaming handler does it.
    exchange->Send(request.body, false, [exchange] { exchange->Send("end", true, nullptr); });
    return;
  }
  exchange->Answer([exchange] {
    const HttpRequest& asked = exchange->request();
    return HttpReply{.body =
                         asked.body + std::string(asked.path.Text() == "/long" ? 4000 : 0, 'x')};
  });
}

// Appends the bytes that there are to read; returns false if the other side has closed.
bool ReadAll(int socket, std::string& to) {
  char bytes[4096];
  while (true) {
    const ssize_t read = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (read <= 0) return read < 0;
    to.append(bytes, static_cast<size_t>(read));
  }
}

// The client of one connection, both on this thread.
class Client {
 public:
  Client(int socket, boost::asio::io_context& io) : socket_(socket), io_(io) {}

  // Sends as many bytes as the system takes; returns false if the connection is over.
  bool Send(absl::string_view& bytes, size_t most, Fed& fed) {
    const size_t size = std::min(most, bytes.size());
    const ssize_t sent = send(socket_, bytes.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
    const bool broken = sent < 0 && errno != EAGAIN;
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    io_.poll();
    return ReadAll(socket_, fed.answer) && !broken;
  }

  // Reads on: a large answer goes in several steps.
  bool ReadOn(Fed& fed) {
    for (size_t before = SIZE_MAX; before != fed.answer.size();) {
      before = fed.answer.size();
      io_.poll();
      if (!ReadAll(socket_, fed.answer)) return false;
    }
    return true;
  }

 private:
  const int socket_;
  boost::asio::io_context& io_;
};

}  // namespace

Fed FeedHttp1(absl::string_view bytes, const Arrival& arrival) {
  // Kept from one input to the next: to make it takes as long as a short input does.
  static auto* const kept = new std::unique_ptr<boost::asio::io_context>;
  if (*kept == nullptr) *kept = std::make_unique<boost::asio::io_context>();
  boost::asio::io_context& io = **kept;
  io.restart();
  Fed fed;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return fed;
  {
    const ByteAccount account({.max_bytes = arrival.is_spare ? kSpareAccountBytes : kAccountBytes});
    HttpConnectionContext context(ConnectionOptions(account), Echo);
    boost::asio::ip::tcp::socket socket(io, boost::asio::ip::tcp::v4(), ends[0]);
    auto connection = std::make_shared<HttpConnection>(
        ClientStream(std::move(socket),
                     ConnectionPlace(std::make_shared<std::atomic<int>>(0), arrival.is_spare)),
        context);
    connection->Start();
    Client client(ends[1], io);
    const size_t half = bytes.size() / 2;
    bool open = true;
    while (open && !bytes.empty()) {
      if (arrival.server_leaves && !context.draining && bytes.size() <= half) {
        context.draining = true;
        connection->LeaveIfIdle();
      }
      const bool is_last = bytes.size() <= arrival.part_bytes;
      if (is_last && arrival.client_vanishes) break;
      open = client.Send(bytes, arrival.part_bytes, fed);
    }
    if (open && !arrival.client_vanishes) open = client.ReadOn(fed);
    fed.cut_off = !open;
    if (open && !bytes.empty()) send(ends[1], bytes.data(), bytes.size(), MSG_NOSIGNAL);
    shutdown(ends[1], SHUT_RDWR);
    const std::weak_ptr<HttpConnection> ending = std::exchange(connection, nullptr);
    io.poll();
    // A connection that still lives goes with the io_context that it waits on.
    if (!ending.expired()) kept->reset();
  }
  close(ends[1]);
  return fed;
}

}  // namespace reprise

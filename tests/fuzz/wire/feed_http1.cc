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

void Echo(const std::shared_ptr<HttpExchange>& exchange) {
  exchange->Answer([exchange] { return HttpReply{.body = exchange->request().body}; });
}

// Appends what there is to read; false: the other side has closed.
bool ReadAll(int socket, std::string& to) {
  char bytes[4096];
  while (true) {
    const ssize_t read = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (read <= 0) return read < 0;
    to.append(bytes, static_cast<size_t>(read));
  }
}

}  // namespace

Fed FeedHttp1(absl::string_view bytes, size_t part_bytes) {
  Fed fed;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return fed;
  {
    const ByteAccount account({.max_bytes = 16 << 20});
    HttpConnectionContext context({.max_body_bytes = 1 << 20, .account = &account}, Echo);
    boost::asio::io_context io;
    boost::asio::ip::tcp::socket socket(io, boost::asio::ip::tcp::v4(), ends[0]);
    std::make_shared<HttpConnection>(
        ClientStream(std::move(socket), ConnectionPlace(std::make_shared<std::atomic<int>>(0))),
        context)
        ->Start();
    bool open = true;
    while (open && !bytes.empty()) {
      const size_t size = std::min(part_bytes, bytes.size());
      const ssize_t sent = send(ends[1], bytes.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
      const bool broken = sent < 0 && errno != EAGAIN;
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      io.poll();
      open = ReadAll(ends[1], fed.answer) && !broken;
    }
    fed.cut_off = !open;
    shutdown(ends[1], SHUT_RDWR);
    io.poll();
  }
  close(ends[1]);
  return fed;
}

}  // namespace reprise

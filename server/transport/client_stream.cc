#include "server/transport/client_stream.h"

#include <poll.h>
#include <sys/socket.h>

namespace reprise {
namespace {

using Error = boost::system::error_code;

constexpr std::chrono::milliseconds kPollTime(200);

}  // namespace

void ClientStream::Watch(std::weak_ptr<ClientStream> self, std::weak_ptr<ClientWatcher> watcher) {
  stream_.socket().async_wait(
      boost::asio::ip::tcp::socket::wait_read, [self, watcher](Error error) {
        const std::shared_ptr<ClientStream> stream = self.lock();
        if (stream == nullptr) return;
        const std::shared_ptr<ClientWatcher> told = watcher.lock();
        if (told == nullptr) return;
        char byte;
        const int socket = stream->stream_.socket().native_handle();
        if (!error && recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0) {
          return stream->Poll(self, watcher);
        }
        told->OnClientLeft();
      });
}

void ClientStream::Poll(std::weak_ptr<ClientStream> self, std::weak_ptr<ClientWatcher> watcher) {
  pollfd client = {.fd = stream_.socket().native_handle(), .events = POLLRDHUP};
  if (poll(&client, 1, 0) > 0) {
    if (const std::shared_ptr<ClientWatcher> told = watcher.lock()) told->OnClientLeft();
    return;
  }
  if (!poll_.has_value()) poll_.emplace(stream_.get_executor());
  poll_->expires_after(kPollTime);
  poll_->async_wait([self, watcher](Error error) {
    const std::shared_ptr<ClientStream> stream = self.lock();
    if (!error && stream != nullptr && !watcher.expired()) stream->Poll(self, watcher);
  });
}

void ClientStream::CloseSending() {
  Error ignored;
  stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
}

void ClientStream::Abort() { shutdown(stream_.socket().native_handle(), SHUT_RDWR); }

}  // namespace reprise

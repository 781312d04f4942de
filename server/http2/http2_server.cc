#include "server/http2/http2_server.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/base/memory_net.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "server/transport/listener.h"
#include "server/transport/network_threads.h"

namespace reprise {
namespace {

constexpr std::chrono::seconds kCheckTime(1);
constexpr std::chrono::milliseconds kDrainCheckTime(100);
// How long connections that are cut off may take to notice.
constexpr std::chrono::seconds kCutTime(2);

}  // namespace

class Http2Server::Impl {
 public:
  Impl(Http2ServerOptions options, const RpcRoutes& routes, const ByteAccount& account)
      : threads_wanted_(options.threads),
        context_{options.http2, options.times, options.rpc, &routes, &account},
        check_(io_),
        listener_(io_,
                  {.max_connections = options.max_connections,
                   .spare_connections = options.spare_connections},
                  std::move(options.tls),
                  [this](ClientStream stream) { TakeOver(std::move(stream)); }),
        threads_(io_, &account) {}
  ~Impl() {
    threads_.Join();
    // Streams hold their connection: open ones are ended, so that nothing outlives io_.
    const auto connections = std::move(connections_);
    for (const Connection& connection : connections) connection->End();
  }

  absl::Status Listen(const std::string& address, int port) {
    RETURN_IF_ERROR(listener_.Listen(address, port, "gRPC"));
    CheckLater();
    threads_.Start(threads_wanted_);
    return absl::OkStatus();
  }

  int port() const { return listener_.port(); }
  int connections() const { return listener_.connections(); }

  bool Leave(std::chrono::steady_clock::time_point deadline) {
    bool leaves_already = false;
    {
      MutexLock lock(mutex_);
      leaves_already = std::exchange(draining_, true);
    }
    if (!leaves_already) {
      listener_.Close();
      ForEach([](Http2Connection& connection) { connection.Drain(false); });
    }
    return WaitUntilNone(deadline);
  }

  void Shutdown(std::chrono::steady_clock::time_point deadline) {
    ForEach([](Http2Connection& connection) { connection.Drain(true); });
    if (!Leave(deadline)) {
      ForEach([](Http2Connection& connection) { connection.End(); });
      WaitUntilNone(std::chrono::steady_clock::now() + kCutTime);
    }
  }

 private:
  using Connection = std::shared_ptr<Http2Connection>;

  void TakeOver(ClientStream stream) {
    const auto connection = std::make_shared<Http2Connection>(std::move(stream), context_);
    // Clients that connected just before the port closed have their call answered.
    bool leaves = false;
    {
      MutexLock lock(mutex_);
      leaves = draining_;
      connections_.insert(connection);
    }
    boost::asio::post(connection->executor(), [this, connection, leaves] {
      const auto ended = [this, weak = std::weak_ptr<Http2Connection>(connection)] {
        MutexLock lock(mutex_);
        if (const Connection gone = weak.lock()) connections_.erase(gone);
        if (connections_.empty()) none_.NotifyAll();
      };
      if (!WhereMemoryAllows([&] {
            connection->Start(ended);
            if (leaves) connection->Drain(false);
          })) {
        connection->End();
        ended();
      }
    });
  }

  // Calls `work(Http2Connection&)` on the strand of each.
  template <typename Work>
  void ForEach(Work work) {
    std::vector<Connection> connections;
    {
      MutexLock lock(mutex_);
      connections.assign(connections_.begin(), connections_.end());
    }
    for (Connection& connection : connections) {
      boost::asio::post(connection->executor(), [connection, work] {
        if (!WhereMemoryAllows([&] { work(*connection); })) connection->End();
      });
    }
  }

  void CheckLater() {
    bool draining = false;
    {
      MutexLock lock(mutex_);
      draining = draining_;
    }
    check_.expires_after(draining ? std::chrono::nanoseconds(kDrainCheckTime)
                                  : std::chrono::nanoseconds(kCheckTime));
    check_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      const auto now = std::chrono::steady_clock::now();
      WhereMemoryAllows(
          [&] { ForEach([now](Http2Connection& connection) { connection.Check(now); }); });
      CheckLater();
    });
  }

  bool WaitUntilNone(std::chrono::steady_clock::time_point deadline) {
    MutexLock lock(mutex_);
    while (!connections_.empty()) {
      const auto now = std::chrono::steady_clock::now();
      if (now >= deadline) return false;
      none_.WaitFor(mutex_, deadline - now);
    }
    return true;
  }

  const int threads_wanted_;
  // Outlives the steps that io_ holds.
  const Http2Context context_;
  Mutex mutex_;
  CondVar none_;
  std::unordered_set<Connection> connections_ GUARDED_BY(mutex_);
  bool draining_ GUARDED_BY(mutex_) = false;
  boost::asio::io_context io_;
  boost::asio::steady_timer check_;
  Listener listener_;
  NetworkThreads threads_;
};

Http2Server::Http2Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Http2Server::~Http2Server() = default;

absl::StatusOr<std::unique_ptr<Http2Server>> Http2Server::Start(Http2ServerOptions options,
                                                                const RpcRoutes& routes,
                                                                const ByteAccount& account) {
  const std::string address = options.address;
  const int port = options.port;
  auto impl = std::make_unique<Impl>(std::move(options), routes, account);
  const absl::Status status = impl->Listen(address, port);
  if (!status.ok()) return status;
  return std::unique_ptr<Http2Server>(new Http2Server(std::move(impl)));
}

int Http2Server::port() const { return impl_->port(); }
int Http2Server::connections() const { return impl_->connections(); }
bool Http2Server::Leave(std::chrono::steady_clock::time_point deadline) {
  return impl_->Leave(deadline);
}
void Http2Server::Shutdown(std::chrono::steady_clock::time_point deadline) {
  impl_->Shutdown(deadline);
}

}  // namespace reprise

#include "server/http/http_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/mutex.h"

namespace reprise {
namespace {

// Scrapes, probes and a person's browser: a few threads are plenty most of the time. But a client
// that sends its request byte by byte holds one as long as it likes, and a probe must not wait for
// it: more are made when all are busy.
constexpr size_t kMostThreads = 64;
constexpr int kKeepAliveSeconds = 2;
constexpr int kTimeoutSeconds = 5;
// Nobody sends a page anything.
constexpr size_t kMostBodyBytes = size_t{64} << 10;

// Threads are made when all of them are busy, and stay. What a connection throws ends with it.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> serve) override {
    MutexLock lock(mutex_);
    if (!WhereMemoryAllows([&] { waiting_.push_back(serve); })) return;
    if (waiting_.size() > idle_ && threads_.size() < kMostThreads) {
      // Without another one those that are there serve it, or the next connection tries again.
      WhereMemoryAllows([&] { threads_.emplace_back([this] { Work(); }); });
    }
    added_.NotifyOne();
  }
  void shutdown() override {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      added_.NotifyAll();
    }
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Work() {
    while (true) {
      std::function<void()> serve;
      {
        MutexLock lock(mutex_);
        ++idle_;
        while (waiting_.empty() && !stopping_) added_.Wait(mutex_);
        --idle_;
        if (waiting_.empty()) return;
        serve = std::move(waiting_.front());
        waiting_.pop_front();
      }
      WhereMemoryAllows(serve);
    }
  }

  Mutex mutex_;
  CondVar added_;
  std::deque<std::function<void()>> waiting_ GUARDED_BY(mutex_);
  size_t idle_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // grows in enqueue, which one thread calls, as shutdown
};

}  // namespace

HttpServer::HttpServer() : server_(std::make_unique<httplib::Server>()) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const Endpoint& endpoint,
                                                              std::vector<HttpPage> pages) {
  std::unique_ptr<HttpServer> http(new HttpServer);
  httplib::Server& server = *http->server_;
  server.new_task_queue = [] { return new ConnectionThreads; };
  server.set_keep_alive_timeout(kKeepAliveSeconds);
  server.set_read_timeout(kTimeoutSeconds);
  server.set_write_timeout(kTimeoutSeconds);
  server.set_payload_max_length(kMostBodyBytes);
  // The library's default shares a port between processes silently.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  for (HttpPage& page : pages) {
    server.Get(page.path, [reply = std::move(page.reply)](const httplib::Request&,
                                                          httplib::Response& response) {
      HttpReply made = reply();
      response.status = made.status;
      response.set_content(made.body, made.content_type);
    });
  }
  if (endpoint.port == 0) {
    http->port_ = server.bind_to_any_port(endpoint.address);
  } else if (server.bind_to_port(endpoint.address, endpoint.port)) {
    http->port_ = endpoint.port;
  }
  if (http->port_ <= 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", endpoint.address, ":", endpoint.port, " for HTTP"));
  }
  http->thread_ = std::thread([&server] { server.listen_after_bind(); });
  return http;
}

HttpServer::~HttpServer() {
  if (!thread_.joinable()) return;
  // Stopping before the thread listens would be lost.
  while (!server_->is_running()) std::this_thread::yield();
  server_->stop();
  thread_.join();
}

}  // namespace reprise

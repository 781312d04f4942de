// xds.service.orca.v3.OpenRcaService: a stream of load reports, as often as the client asks.
//
// Threads: all methods from any. One thread of its own sends to all streams.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_set>

#include "runtime/base/mutex.h"
#include "server/http2/rpc_routes.h"

namespace reprise {

class LoadReportService {
 public:
  // Returns the report as it is now.
  using Source = std::function<RpcCall::Message()>;

  // Reports come no more often than this, and this often where the client does not say.
  static constexpr std::chrono::milliseconds kLeastInterval{100};
  static constexpr std::chrono::seconds kUsualInterval{10};

  explicit LoadReportService(Source source) : source_(std::move(source)) {}
  ~LoadReportService();

  // Adds the routes; the service outlives them and their calls.
  void AddTo(RpcRoutes& routes);
  // Ends the streams that are open, and those that come: the server stops.
  void Stop() EXCLUDES(mutex_);

 private:
  class Watcher;

  // Takes a stream in; its first report comes at once.
  void Add(std::shared_ptr<Watcher> watcher) EXCLUDES(mutex_);
  void Run() EXCLUDES(mutex_);

  const Source source_;  // constant after construction
  // Guarded.
  Mutex mutex_;
  CondVar changed_;
  std::unordered_set<std::shared_ptr<Watcher>> watchers_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);  // starts with the first stream
};

}  // namespace reprise

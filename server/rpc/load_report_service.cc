#include "server/rpc/load_report_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/orca_service.pb.h"
#include "runtime/base/memory_net.h"
#include "server/http2/unary_method.h"

namespace reprise {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
using xds::service::orca::v3::OrcaLoadReportRequest;

// Longer ones are none.
constexpr int64_t kMostSeconds = int64_t{365} * 24 * 3600;

std::chrono::nanoseconds IntervalOf(const OrcaLoadReportRequest& request) {
  if (!request.has_report_interval()) return LoadReportService::kUsualInterval;
  const auto& asked = request.report_interval();
  const int64_t seconds = std::clamp<int64_t>(asked.seconds(), 0, kMostSeconds);
  return std::max<std::chrono::nanoseconds>(
      LoadReportService::kLeastInterval,
      std::chrono::seconds(seconds) + std::chrono::nanoseconds(std::max(0, asked.nanos())));
}

}  // namespace

// One stream. A report that is due while the client does not read is left out.
class LoadReportService::Watcher final : public RpcHandler,
                                         public std::enable_shared_from_this<Watcher> {
 public:
  Watcher(std::shared_ptr<RpcCall> call, LoadReportService& service)
      : call_(std::move(call)), service_(service) {}

  void OnMessage(RpcMessage message) override {
    OrcaLoadReportRequest request;
    const absl::Status parsed = ParseMessage(message.bytes, request);
    if (!parsed.ok()) return call_->Finish(parsed);
    interval_ = IntervalOf(request);
    service_.Add(shared_from_this());
  }
  void OnSent() override {
    MutexLock lock(service_.mutex_);
    sending_ = false;
  }
  void OnDone() override {
    MutexLock lock(service_.mutex_);
    service_.watchers_.erase(shared_from_this());
  }

  void Stop() { call_->Finish(absl::UnavailableError("the server is stopping")); }

  // Sends a report where one is due, and returns when the next one is. The service's mutex is held.
  SteadyTime Tell(SteadyTime now, const Source& source) {
    if (due_ > now) return due_;
    due_ = now + interval_;
    if (!std::exchange(sending_, true)) call_->Send(source());
    return due_;
  }

 private:
  const std::shared_ptr<RpcCall> call_;
  LoadReportService& service_;
  std::chrono::nanoseconds interval_{0};  // constant once the stream was added
  // Guarded by the service's mutex.
  SteadyTime due_ = SteadyTime::min();
  bool sending_ = false;
};

LoadReportService::~LoadReportService() { Stop(); }

void LoadReportService::AddTo(RpcRoutes& routes) {
  routes.Add("/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics",
             {.start = [this](std::shared_ptr<RpcCall> call) {
               return std::make_shared<Watcher>(std::move(call), *this);
             }});
}

void LoadReportService::Add(std::shared_ptr<Watcher> watcher) {
  MutexLock lock(mutex_);
  if (stopped_) return watcher->Stop();
  watchers_.insert(std::move(watcher));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.NotifyAll();
}

void LoadReportService::Run() {
  MutexLock lock(mutex_);
  while (!stopped_) {
    SteadyTime next = SteadyTime::max();
    const SteadyTime now = std::chrono::steady_clock::now();
    for (const auto& watcher : watchers_) {
      WhereMemoryAllows([&] { next = std::min(next, watcher->Tell(now, source_)); });
    }
    if (next == SteadyTime::max()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitFor(mutex_, next - now);
    }
  }
}

void LoadReportService::Stop() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    for (const auto& watcher : watchers_) watcher->Stop();
    thread = std::move(thread_);
    changed_.NotifyAll();
  }
  if (thread.joinable()) thread.join();
}

}  // namespace reprise

#include "server/rpc/health_service.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "server/http2/unary_method.h"

namespace reprise {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// One Watch. Changes while the client does not read are not kept: it reads the latest.
class HealthService::Watcher final : public RpcHandler,
                                     public std::enable_shared_from_this<Watcher> {
 public:
  Watcher(std::shared_ptr<RpcCall> call, HealthService& service)
      : call_(std::move(call)), service_(service) {}

  void OnMessage(RpcMessage message) override {
    HealthCheckRequest request;
    const absl::Status parsed = ParseMessage(message.bytes, request);
    if (!parsed.ok()) return call_->Finish(parsed);
    MutexLock lock(service_.mutex_);
    name_ = request.service();
    service_.watchers_.insert(shared_from_this());
    Tell();
  }
  void OnSent() override {
    MutexLock lock(service_.mutex_);
    sending_ = false;
    Tell();
  }
  void OnDone() override {
    MutexLock lock(service_.mutex_);
    service_.watchers_.erase(shared_from_this());
  }

  void Stop() { call_->Finish(absl::UnavailableError("the server is stopping")); }

  // Sends the status where the client does not know it yet. The service's mutex is held.
  void Tell() {
    const Status now = service_.StatusOf(name_);
    if (sending_ || told_ == now) return;
    sending_ = true;
    told_ = now;
    const auto answer = std::make_shared<HealthCheckResponse>();
    answer->set_status(now);
    call_->Send(answer);
  }

 private:
  const std::shared_ptr<RpcCall> call_;
  HealthService& service_;
  // Guarded by the service's mutex.
  std::string name_;
  bool sending_ = false;
  std::optional<Status> told_;
};

void HealthService::AddTo(RpcRoutes& routes) {
  constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
  AddMethod<HealthCheckRequest, HealthCheckResponse>(
      routes, kCheck, [this](const auto& request, auto& response) {
        MutexLock lock(mutex_);
        const Status status = StatusOf(request.service());
        if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
          return absl::NotFoundError(
              absl::StrCat("service \"", request.service(), "\" is unknown"));
        }
        response.set_status(status);
        return absl::OkStatus();
      });
  routes.MarkProbe(kCheck);
  routes.Add("/grpc.health.v1.Health/Watch", {.start = [this](std::shared_ptr<RpcCall> call) {
               return std::make_shared<Watcher>(std::move(call), *this);
             }});
}

HealthService::Status HealthService::StatusOf(const std::string& service) const {
  const auto it = serving_.find(service);
  const std::optional<bool> serving = it != serving_.end() ? std::optional<bool>(it->second)
                                      : models_ != nullptr ? models_(service)
                                                           : std::nullopt;
  if (!serving.has_value()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return *serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

void HealthService::Set(const std::string& service, bool serving) {
  MutexLock lock(mutex_);
  serving_[service] = serving;
  for (const auto& watcher : watchers_) WhereMemoryAllows([&] { watcher->Tell(); });
}

void HealthService::Refresh() {
  MutexLock lock(mutex_);
  for (const auto& watcher : watchers_) WhereMemoryAllows([&] { watcher->Tell(); });
}

void HealthService::Stop() {
  MutexLock lock(mutex_);
  for (const auto& watcher : watchers_) watcher->Stop();
}

}  // namespace reprise

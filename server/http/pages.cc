#include "server/http/pages.h"

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/shown_text.h"
#include "server/metrics/open_metrics.h"

namespace reprise {
namespace {

// Returns whether requests may be sent here, which models are not served and why, and how far each
// is.
std::string ReadyBody(const Readiness& readiness, const Repository& repository,
                      const ServerState& state) {
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const Repository::Listed& listed : repository.List()) {
    nlohmann::ordered_json model = {{"name", listed.version->name},
                                    {"version", listed.version->version},
                                    {"state", ModelStateName(listed.state)}};
    if (!listed.why.ok()) model["reason"] = Printable(listed.why.message());
    const WarmupProgress::State warmup = listed.version->warmup->state();
    if (warmup.wanted > 0) {
      model["warmup"] = {{"done", warmup.done},
                         {"wanted", warmup.wanted},
                         {"failed", warmup.failed},
                         {"seconds", static_cast<double>(warmup.elapsed_ns) * 1e-9}};
      if (!warmup.stopped.empty()) model["warmup"]["stopped"] = warmup.stopped;
    }
    models.push_back(std::move(model));
  }
  nlohmann::ordered_json body = {{"ready", readiness.ready}, {"state", state.name()}};
  if (!readiness.ready) body["reason"] = readiness.why;
  if (!readiness.missing.empty()) body["not_ready"] = readiness.missing;
  body["models"] = std::move(models);
  // Names come from folders: bytes that are no UTF-8 are replaced.
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Router::Handler Page(std::function<HttpReply()> make) {
  return [make = std::move(make)](const std::shared_ptr<HttpExchange>& exchange, const PathParts&) {
    exchange->Answer(make);
  };
}

}  // namespace

void AddMetricsPage(const PageContext& context, Router& router) {
  const auto metrics = [catalogue = context.catalogue, readiness = context.readiness](bool open) {
    readiness->Now();  // Finds out which are ready no more.
    if (open) {
      return HttpReply{.content_type = kOpenMetricsType, .body = catalogue->ScrapeOpenMetrics()};
    }
    return HttpReply{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                     .body = catalogue->Scrape()};
  };
  router.AddProbe(
      "GET", "/metrics", Right::kMetrics,
      [metrics](const std::shared_ptr<HttpExchange>& exchange, const PathParts&) {
        exchange->Answer([metrics, open = PrefersOpenMetrics(exchange->request().Field("accept"))] {
          return metrics(open);
        });
      });
}

void AddPages(const PageContext& context, Router& router) {
  AddMetricsPage(context, router);
  const auto live = [] {
    return HttpReply{.content_type = "application/json", .body = "{\"live\": true}"};
  };
  router.AddProbe("GET", "/v2/health/live", Right::kNone, Page(live));
  const auto ready = [context] {
    const Readiness readiness = context.readiness->Now();
    return HttpReply{.status = readiness.ready ? 200 : 503,
                     .content_type = "application/json",
                     .body = ReadyBody(readiness, *context.repository, *context.state)};
  };
  router.AddProbe("GET", "/v2/health/ready", Right::kNone, Page(ready));
  // Probes of other servers' platforms: their status alone counts.
  const auto healthy = [context] {
    const bool ready = context.readiness->Now().ready;
    return HttpReply{.status = ready ? 200 : 503, .body = ready ? "OK\n" : "not ready\n"};
  };
  router.AddProbe("GET", "/health", Right::kNone, Page(healthy));
  router.AddProbe("GET", "/ping", Right::kNone, Page(healthy));
  const auto version = [context] {
    const nlohmann::ordered_json body = {{"version", context.version}, {"name", "reprise"}};
    return HttpReply{.content_type = "application/json", .body = body.dump()};
  };
  router.Add("GET", "/version", Right::kInfer, Page(version));
  const auto ports = [context] {
    const auto [grpc, http] = context.grpc_and_http_ports();
    const nlohmann::ordered_json body = {{"grpc", grpc}, {"http", http}};
    return HttpReply{.content_type = "application/json", .body = body.dump()};
  };
  if (context.grpc_and_http_ports != nullptr) {
    router.Add("GET", "/v2/ports", Right::kInfer, Page(ports));
  }
}

}  // namespace reprise

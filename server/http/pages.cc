#include "server/http/pages.h"

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/http/status_page.h"

namespace reprise {
namespace {

// Which models are ready, and how far the others are.
std::string ReadyBody(const Repository& repository, const ServerState& state) {
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const Repository::Listed& listed : repository.List()) {
    nlohmann::ordered_json model = {{"name", listed.version->name},
                                    {"version", listed.version->version},
                                    {"state", ModelStateName(listed.state)}};
    if (!listed.why.ok()) model["reason"] = std::string(listed.why.message());
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
  const nlohmann::ordered_json body = {{"ready", state.ready()}, {"models", std::move(models)}};
  // Names come from folders: what is no UTF-8 in them is replaced.
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void AddPage(const char* path, std::function<HttpReply()> make, Router& router) {
  router.Add("GET", path,
             [make = std::move(make)](const std::shared_ptr<HttpExchange>& exchange,
                                      const PathParts&) { exchange->Answer(make); });
}

}  // namespace

void AddMetricsPage(const PageContext& context, Router& router) {
  const auto metrics = [catalogue = context.catalogue, repository = context.repository] {
    repository->List();  // Finds out which are ready no more.
    return HttpReply{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                     .body = catalogue->Scrape()};
  };
  AddPage("/metrics", metrics, router);
}

void AddPages(const PageContext& context, Router& router) {
  AddMetricsPage(context, router);
  AddPage(
      "/v2/health/live", [] { return HttpReply{}; }, router);
  const auto ready = [state = context.state, repository = context.repository] {
    return HttpReply{.status = state->ready() ? 200 : 503,
                     .content_type = "application/json",
                     .body = ReadyBody(*repository, *state)};
  };
  AddPage("/v2/health/ready", ready, router);
  const auto status = [context] {
    return HttpReply{.content_type = "text/html; charset=utf-8", .body = RenderStatusPage(context)};
  };
  AddPage("/", status, router);
}

}  // namespace reprise

#include "server/http/pages.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "server/http/status_page.h"

namespace reprise {
namespace {

// What is ready, and how far what is not ready is.
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

}  // namespace

std::vector<HttpPage> MetricsPages(const PageContext& context) {
  Catalogue* catalogue = context.catalogue;
  return {{"/metrics", [catalogue] {
             return HttpReply{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                              .body = catalogue->Scrape()};
           }}};
}

std::vector<HttpPage> AllPages(const PageContext& context) {
  std::vector<HttpPage> pages = MetricsPages(context);
  pages.push_back({"/v2/health/live", [] { return HttpReply{}; }});
  pages.push_back({"/v2/health/ready", [state = context.state, repository = context.repository] {
                     return HttpReply{.status = state->ready() ? 200 : 503,
                                      .content_type = "application/json",
                                      .body = ReadyBody(*repository, *state)};
                   }});
  pages.push_back({"/", [context] {
                     return HttpReply{.content_type = "text/html; charset=utf-8",
                                      .body = RenderStatusPage(context)};
                   }});
  return pages;
}

}  // namespace reprise

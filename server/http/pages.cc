#include "server/http/pages.h"

#include "server/http/status_page.h"

namespace reprise {

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
  pages.push_back({"/v2/health/ready", [state = context.state] {
                     return HttpReply{.status = state->ready() ? 200 : 503};
                   }});
  pages.push_back({"/", [context] {
                     return HttpReply{.content_type = "text/html; charset=utf-8",
                                      .body = RenderStatusPage(context)};
                   }});
  return pages;
}

}  // namespace reprise

#include "server/http/pages.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/http/status_page.h"

namespace reprise {
namespace {

// Names come from folders: anything may be in them.
std::string JsonText(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// What is ready, and how far what is not ready is.
std::string ReadyBody(const Repository& repository, const ServerState& state) {
  std::vector<std::string> models;
  for (const Repository::Listed& listed : repository.List()) {
    const WarmupProgress::State warmup = listed.version->warmup->state();
    std::string text = absl::StrCat("{\"name\":", JsonText(listed.version->name),
                                    ",\"version\":", JsonText(listed.version->version),
                                    ",\"state\":\"", ModelStateName(listed.state), "\"");
    if (!listed.why.ok()) {
      absl::StrAppend(&text, ",\"reason\":", JsonText(std::string(listed.why.message())));
    }
    if (warmup.wanted > 0) {
      absl::StrAppend(&text, ",\"warmup\":{\"done\":", warmup.done, ",\"wanted\":", warmup.wanted,
                      ",\"failed\":", warmup.failed,
                      ",\"seconds\":", static_cast<double>(warmup.elapsed_ns) * 1e-9);
      if (!warmup.stopped.empty()) {
        absl::StrAppend(&text, ",\"stopped\":", JsonText(warmup.stopped));
      }
      text += "}";
    }
    models.push_back(text + "}");
  }
  return absl::StrCat("{\"ready\":", state.ready() ? "true" : "false", ",\"models\":[",
                      absl::StrJoin(models, ","), "]}\n");
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

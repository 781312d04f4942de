#include "server/page/live_page.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/page/page_files.h"

namespace reprise {
namespace {

constexpr char kMainFile[] = "page.html";
constexpr char kDocsFile[] = "docs.html";
// Scripts, styles and answers come from this server alone, and no other page may frame this one.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

absl::string_view MediaTypeOf(absl::string_view name) {
  if (absl::EndsWith(name, ".html")) return "text/html; charset=utf-8";
  if (absl::EndsWith(name, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(name, ".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

std::string RouteOfFile(const PageFile& file) {
  if (file.name == kMainFile) return "/";
  if (file.name == kDocsFile) return "/docs";
  return absl::StrCat("/page/", file.name);
}

HttpReply FileReply(const PageFile& file) {
  return {.content_type = std::string(MediaTypeOf(file.name)),
          .fields = {{"Content-Security-Policy", kPolicy},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cache-Control", "no-cache"}},
          .body = std::string(file.bytes)};
}

}  // namespace

void AddLivePage(const OverviewContext& context, Router& router) {
  for (const PageFile& file : PageFiles()) {
    router.Add("GET", RouteOfFile(file), Right::kNone,
               [&file](const std::shared_ptr<HttpExchange>& exchange, const PathParts&) {
                 exchange->Answer([&file] { return FileReply(file); });
               });
  }
  router.Add("GET", "/v2/overview", Right::kObserve,
             [context](const std::shared_ptr<HttpExchange>& exchange, const PathParts&) {
               exchange->Answer([&context] {
                 return HttpReply{.content_type = "application/json",
                                  .fields = {{"Cache-Control", "no-store"}},
                                  .body = OverviewJson(context)};
               });
             });
}

}  // namespace reprise

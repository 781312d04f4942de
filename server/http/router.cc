#include "server/http/router.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace reprise {
namespace {

// Adds to `parts` the variable of a segment of a pattern, "{model}" or "{model}:predict". False:
// the segment of the path is another one.
bool MatchSegment(absl::string_view pattern, absl::string_view segment, PathParts& parts) {
  if (!absl::StartsWith(pattern, "{")) return pattern == segment;
  const size_t end = pattern.find('}');
  if (!absl::ConsumeSuffix(&segment, pattern.substr(end + 1)) || segment.empty()) return false;
  parts.emplace(pattern.substr(1, end - 1), segment);
  return true;
}

std::optional<PathParts> Match(const std::vector<std::string>& pattern,
                               const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return std::nullopt;
  PathParts parts;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (!MatchSegment(pattern[i], path[i], parts)) return std::nullopt;
  }
  return parts;
}

}  // namespace

void Router::Add(std::string method, std::string pattern, Right right, Handler handler) {
  std::vector<std::string> segments = absl::StrSplit(pattern, '/', absl::SkipEmpty());
  routes_.push_back({.method = std::move(method),
                     .pattern = std::move(pattern),
                     .right = right,
                     .segments = std::move(segments),
                     .handler = std::move(handler)});
}

void Router::AddProbe(std::string method, std::string pattern, Right right, Handler handler) {
  Add(std::move(method), std::move(pattern), right, std::move(handler));
  routes_.back().is_probe = true;
}

Router::Found Router::Find(const HttpRequest& request) const {
  const absl::string_view method =
      request.method == "HEAD" ? "GET" : absl::string_view(request.method);
  Found found;
  for (const Route& route : routes_) {
    std::optional<PathParts> parts = Match(route.segments, request.path.segments());
    if (!parts.has_value()) continue;
    if (route.method == method) {
      found.route_ = &route;
      found.right_ = route.right;
      found.parts_ = *std::move(parts);
      return found;
    }
    if (found.others_.empty()) found.right_ = route.right;
    found.others_.push_back(route.method);
  }
  return found;
}

void Router::Found::Answer(std::shared_ptr<HttpExchange> exchange) const {
  if (route_ != nullptr) return route_->handler(std::move(exchange), parts_);
  const HttpRequest& request = exchange->request();
  exchange->Answer([others = others_, method = request.method, path = request.path] {
    if (others.empty()) return ErrorReply(path, 404, absl::StrCat("there is no ", path.Text()));
    const std::string allowed = absl::StrJoin(others, ", ");
    return ErrorReply(path, 405, absl::StrCat(path.Text(), " takes ", allowed, ", not ", method),
                      {{"Allow", allowed}});
  });
}

}  // namespace reprise

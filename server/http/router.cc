#include "server/http/router.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace reprise {
namespace {

std::vector<std::string> Segments(absl::string_view path) {
  return absl::StrSplit(path, '/', absl::SkipEmpty());
}

// nullopt: not two hexadecimal digits behind a percent sign.
std::optional<std::string> PercentDecoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    int byte = 0;
    if (i + 2 >= text.size() || !absl::ascii_isxdigit(text[i + 1]) ||
        !absl::SimpleHexAtoi(text.substr(i + 1, 2), &byte)) {
      return std::nullopt;
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

bool IsVariable(absl::string_view segment) { return absl::StartsWith(segment, "{"); }

std::optional<PathParts> Match(const std::vector<std::string>& pattern,
                               const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return std::nullopt;
  PathParts parts;
  for (size_t i = 0; i < pattern.size(); ++i) {
    std::optional<std::string> segment = PercentDecoded(path[i]);
    if (!segment.has_value()) return std::nullopt;
    if (IsVariable(pattern[i])) {
      parts.emplace(pattern[i].substr(1, pattern[i].size() - 2), *std::move(segment));
    } else if (pattern[i] != *segment) {
      return std::nullopt;
    }
  }
  return parts;
}

}  // namespace

void Router::Add(std::string method, const std::string& pattern, Handler handler) {
  routes_.push_back({std::move(method), Segments(pattern), std::move(handler)});
}

void Router::Handle(std::shared_ptr<HttpExchange> exchange) const {
  const HttpRequest& request = exchange->request();
  const std::vector<std::string> path = Segments(request.path);
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  std::vector<std::string> others;
  for (const Route& route : routes_) {
    const std::optional<PathParts> parts = Match(route.segments, path);
    if (!parts.has_value()) continue;
    if (route.method == method) return route.handler(std::move(exchange), *parts);
    others.push_back(route.method);
  }
  exchange->Answer([others, method = request.method, path = request.path] {
    if (others.empty()) return ErrorReply(404, absl::StrCat("there is no ", path));
    const std::string allowed = absl::StrJoin(others, ", ");
    return ErrorReply(405, absl::StrCat(path, " takes ", allowed, ", not ", method),
                      {{"Allow", allowed}});
  });
}

}  // namespace reprise

// RequestPath: the path of a request. The one place where a target is parsed: access checks,
// routes and body limits see the same segments, decoded once.
//
//   ASSIGN_OR_RETURN(const RequestPath path, RequestPath::Parse("/v2//models/a%20b/?verbose=1"));
//   path.segments();  // {"v2", "models", "a b"}
//
// Empty segments mean nothing: "//v2/models/" is "/v2/models".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

class RequestPath {
 public:
  // The path "/".
  RequestPath() = default;

  // Reads the target of a request line: "/path?query", or "http://host/path?query" as proxies are
  // sent it. Errors: INVALID_ARGUMENT for any other form, for a fragment, and for a segment that a
  // program in front may read as another path: a percent sign without two hexadecimal digits, and
  // a sequence that decodes to a slash, to NUL, to "." or "..", or to bytes that are not UTF-8.
  static absl::StatusOr<RequestPath> Parse(absl::string_view target);

  const std::vector<std::string>& segments() const { return segments_; }
  // Returns the parameters after "?", decoded, in their order: of "?conf=0.4&model=a%20b" they are
  // {"conf", "0.4"} and {"model", "a b"}.
  const std::vector<std::pair<std::string, std::string>>& query() const { return query_; }
  // Returns the decoded segments after a slash each, for messages: "/v2/models/a b".
  std::string Text() const;

 private:
  RequestPath(std::vector<std::string> segments,
              std::vector<std::pair<std::string, std::string>> query)
      : segments_(std::move(segments)), query_(std::move(query)) {}

  std::vector<std::string> segments_;
  std::vector<std::pair<std::string, std::string>> query_;
};

}  // namespace reprise

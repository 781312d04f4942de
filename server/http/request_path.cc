#include "server/http/request_path.h"

#include <simdjson.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

absl::Status BadPath(absl::string_view segment, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("the path cannot be used: its segment ", QuotedText(segment), " ", why));
}

absl::StatusOr<std::string> DecodedSegment(absl::string_view segment) {
  std::string decoded;
  decoded.reserve(segment.size());
  for (size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] != '%') {
      decoded += segment[i];
      continue;
    }
    int byte = 0;
    if (i + 2 >= segment.size() || !absl::ascii_isxdigit(segment[i + 1]) ||
        !absl::SimpleHexAtoi(segment.substr(i + 1, 2), &byte)) {
      return BadPath(segment, "has a percent sign without two hexadecimal digits after it");
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  if (absl::StrContains(decoded, '/')) return BadPath(segment, "decodes to a slash");
  if (absl::StrContains(decoded, '\0')) return BadPath(segment, "decodes to NUL");
  if (decoded == "." || decoded == "..") return BadPath(segment, "is a step to another folder");
  if (!simdjson::validate_utf8(decoded))
    return BadPath(segment, "decodes to bytes that are not UTF-8");
  return decoded;
}

// Returns a name or a value of a query, in which a plus is a blank; a percent sign without two
// hexadecimal digits stays.
std::string DecodedParameter(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    int byte = 0;
    if (text[i] == '%' && i + 2 < text.size() && absl::ascii_isxdigit(text[i + 1]) &&
        absl::SimpleHexAtoi(text.substr(i + 1, 2), &byte)) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

// Returns the part after the server of a target that names one; other targets as they are.
absl::string_view WithoutServer(absl::string_view target) {
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(target, scheme)) continue;
    const size_t end = target.find_first_of("/?#", scheme.size());
    return end == absl::string_view::npos ? "" : target.substr(end);
  }
  return target;
}

}  // namespace

absl::StatusOr<RequestPath> RequestPath::Parse(absl::string_view target) {
  const absl::string_view local = WithoutServer(target);
  if (absl::StrContains(local, '#')) {
    return absl::InvalidArgumentError(
        absl::StrCat("the target ", QuotedText(target), " of the request has a fragment"));
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(local, absl::MaxSplits('?', 1));
  const absl::string_view path = parts.first;
  // An empty path is "/" after a server's name alone; "*" asks about the server as a whole.
  const bool is_whole_server = path == "*";
  if (!absl::StartsWith(path, "/") && !is_whole_server && local.size() == target.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the target ", QuotedText(target),
                     " of the request is neither a path from / nor http://HOST/PATH"));
  }
  std::vector<std::string> segments;
  for (const absl::string_view segment : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    ASSIGN_OR_RETURN(segments.emplace_back(), DecodedSegment(segment));
  }
  std::vector<std::pair<std::string, std::string>> query;
  for (const absl::string_view parameter : absl::StrSplit(parts.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(parameter, absl::MaxSplits('=', 1));
    query.emplace_back(DecodedParameter(sides.first), DecodedParameter(sides.second));
  }
  return RequestPath(std::move(segments), std::move(query));
}

std::string RequestPath::Text() const { return absl::StrCat("/", absl::StrJoin(segments_, "/")); }

}  // namespace reprise

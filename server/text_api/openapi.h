// RouteInfo: the words of /openapi.json for a path; and the schemas of the paths that take texts.
#pragma once

#include "absl/strings/string_view.h"

namespace reprise {

// A path, and the names of the schemas of its body and its answer; empty: none. A path that is
// there also below /models/{model} or with /versions/{version} is one row.
struct RouteInfo {
  const char* method;
  const char* path;
  const char* summary;
  const char* request;
  const char* response;  // or the media type of another one: "text/plain"
  const char* request_type = "application/json";
};

// Returns THE schemas of texts: a JSON object by name.
absl::string_view TextSchemas();

}  // namespace reprise

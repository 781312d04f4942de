// The page /openapi.json: OpenAPI 3.0 of the paths that take texts.
#pragma once

#include <string>
#include <vector>

namespace reprise {

// A path, and the names of its schemas in openapi.cc; empty: none.
struct RouteInfo {
  const char* method;
  const char* path;
  const char* summary;
  const char* request;
  const char* response;
};

std::string OpenApiPage(const std::vector<RouteInfo>& routes, const std::string& version);

}  // namespace reprise

// The page /openapi.json: OpenAPI 3.1 of the router's table of routes.
//
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/http/router.h"
#include "server/text_api/openapi.h"

namespace reprise {

// Returns the name by which tables describe a pattern: "/v2/models/{model}/infer" of
// "/v2/models/{model}/versions/{version}/infer", "/embed" of "/models/{model}/embed".
std::string DescribedPath(const std::string& pattern);

// Returns the description of a route; nullptr where there is none.
const RouteInfo* FindInfo(absl::Span<const RouteInfo> infos, const Router::Route& route);

std::string OpenApiPage(const std::vector<Router::Route>& routes, absl::Span<const RouteInfo> texts,
                        absl::Span<const RouteInfo> others, const std::string& version);

// Adds /openapi.json, which describes the routes of the router when it is first asked for.
// `router` outlives it.
void AddOpenApi(const std::string& version, Router& router);

}  // namespace reprise

// TextApi: the paths that take texts. Start here: THE table of them is in text_api.cc.
//
// Each path is there a second time below /models/{model}, for clients that know no model's name.
#pragma once

#include <vector>

#include "server/http/router.h"
#include "server/text_api/openapi.h"
#include "server/text_api/text_face.h"

namespace reprise {

// Adds the routes; all in the context outlives the router.
void AddTextApi(const TextApiContext& context, Router& router);

// Returns the description of each of them for /openapi.json.
std::vector<RouteInfo> TextRoutes();

}  // namespace reprise

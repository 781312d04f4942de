// TextApi: the paths that take texts. Start here: THE table of them is in text_api.cc, and
// /openapi.json is made from it.
//
// Each path is there a second time below /models/{model}, for clients that know no model's name.
#pragma once

#include "server/http/router.h"
#include "server/text_api/text_face.h"

namespace reprise {

// All in the context outlives the router.
void AddTextApi(const TextApiContext& context, Router& router);

}  // namespace reprise

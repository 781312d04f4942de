// The live page at "/": a page of HTML, CSS and JavaScript that shows the server's state and lets
// people try its models.
//
// The files lie in server/page/files and are part of the program. The page itself takes no right
// and shows nothing: its script asks routes of the server with the key that its user gives, and
// data that the key may not see is not shown. It asks nothing of any other server, which its
// Content-Security-Policy holds the browser to.
#pragma once

#include "server/http/router.h"
#include "server/page/overview.h"

namespace reprise {

// Adds "/", "/docs" (which shows /openapi.json), the files below "/page/", and /v2/overview, which
// the script reads. All in the context outlives the router.
void AddLivePage(const OverviewContext& context, Router& router);

}  // namespace reprise

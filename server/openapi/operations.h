// THE table of the descriptions in /openapi.json of routes without texts.
#pragma once

#include "absl/types/span.h"
#include "server/text_api/openapi.h"

namespace reprise {

absl::Span<const RouteInfo> OtherRoutes();

}  // namespace reprise

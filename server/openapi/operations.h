// THE table of what /openapi.json says of the routes that take no texts.
#pragma once

#include "absl/types/span.h"
#include "server/text_api/openapi.h"

namespace reprise {

absl::Span<const RouteInfo> OtherRoutes();

}  // namespace reprise

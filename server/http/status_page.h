// The page at "/": models, their buckets and recipes, and where to look further. One file of HTML
// without scripts, fonts or anything else to fetch.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "server/http/pages.h"

namespace reprise {

std::string RenderStatusPage(const PageContext& context);

// Text with the characters that mean something in HTML replaced.
std::string EscapeHtml(absl::string_view text);

}  // namespace reprise

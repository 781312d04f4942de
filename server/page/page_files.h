// The files of the live page, as the build has put them into the program.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace reprise {

struct PageFile {
  absl::string_view name;  // "main.js"
  absl::string_view bytes;
};

// Returns all of them; the page itself is "page.html".
absl::Span<const PageFile> PageFiles();

}  // namespace reprise

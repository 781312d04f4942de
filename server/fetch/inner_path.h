// Paths that stay in their folder.
#pragma once

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace reprise {

// Returns whether `path` is relative, has no "..", no empty part, no backslash and no control
// character.
inline bool IsInnerPath(absl::string_view path) {
  if (path.size() > 1024) return false;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  for (const char c : path) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c)) || c == '\\') return false;
  }
  return true;
}

}  // namespace reprise

// HideBytes: the text of a graph without the numbers of its large constants.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace reprise {

// Returns `text`, a graph as Print writes it, with {N bytes} in place of each hex"…": readers of a
// graph's structure need not see its numbers. It cannot be parsed any more where it had such.
std::string HideBytes(absl::string_view text);

// Returns a text that HideBytes made, with zeros in place of the hidden bytes: it can be parsed
// again.
std::string ZeroHiddenBytes(absl::string_view text);

}  // namespace reprise

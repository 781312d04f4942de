// Compression of answers, for clients that ask for it.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace reprise {

// Returns whether the value of an Accept-Encoding takes gzip: by name or by "*", and not with
// "q=0".
bool AcceptsGzip(absl::string_view accept_encoding);

// `text` as gzip, quickly rather than small; "" where there is no memory for it.
std::string Gzip(absl::string_view text);

}  // namespace reprise

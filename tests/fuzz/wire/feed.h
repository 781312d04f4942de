// The readers of clients' bytes, as functions of bytes.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace reprise {

// The outcome of a connection.
struct Fed {
  std::string answer;    // what the server sent
  bool cut_off = false;  // the server ended it
};

// Feeds a connection of HTTP/2 that has methods "/echo/Unary" and "/echo/Stream". `part_bytes`: how
// many bytes arrive at a time.
Fed FeedHttp2(absl::string_view bytes, size_t part_bytes);
// Feeds a connection of HTTP/1.1 whose handler echoes bodies.
Fed FeedHttp1(absl::string_view bytes, size_t part_bytes);

}  // namespace reprise

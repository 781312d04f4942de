// The readers of clients' bytes, as functions of bytes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace reprise {

// How the bytes of a client come, and the events around them.
struct Arrival {
  size_t part_bytes = SIZE_MAX;  // that arrive at a time
  bool server_leaves = false;    // it drains once half of them have come
  bool client_vanishes = false;  // it closes its side, and reads none of its answers
  bool is_spare = false;         // the connection is above the port's limit; it has little room
};
// Returns the arrival that the first byte of a fuzzer's input stands for; `size` bytes follow it.
Arrival ArrivalOf(unsigned char byte, size_t size);

// The outcome of a connection.
struct Fed {
  std::string answer;    // bytes that the server sent
  bool cut_off = false;  // the server ended it
};

// Feeds a connection of HTTP/2 that has methods "/echo/Unary", "/echo/Stream", and "/echo/Fails",
// which answers with an error.
Fed FeedHttp2(absl::string_view bytes, const Arrival& arrival);
// Feeds a connection of HTTP/1.1 whose handler echoes bodies: at "/pieces" in pieces, at "/long"
// with a long text after them. At "/small" no body may become large.
Fed FeedHttp1(absl::string_view bytes, const Arrival& arrival);

}  // namespace reprise

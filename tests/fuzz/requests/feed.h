// Readers of the requests and configurations of clients, as functions of bytes. Each ends the
// process where a promise is broken: views that are handed on lie in memory that is held.
//
// Threads: one.
#pragma once

#include "absl/strings/string_view.h"

namespace reprise::fuzz {

// Returns whether the bytes were taken; refusing them is no fault.
bool FeedConfig(absl::string_view text);      // config.pbtxt, strict and lenient
bool FeedConfigJson(absl::string_view json);  // the configuration of a load, as JSON
// Feeds the body of an inference over HTTP after two bytes, the smaller one first: how many bytes
// of it are JSON. 0: all of it, and the request does not say.
bool FeedRest(absl::string_view bytes);
bool FeedGrpc(absl::string_view bytes);  // the message of an inference, serialised

}  // namespace reprise::fuzz

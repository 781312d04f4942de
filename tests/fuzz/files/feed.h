// The readers of files, as functions of bytes. Each ends the process where a promise is broken:
// accepted bytes must print, parse and encode as themselves again.
//
// Threads: one.
#pragma once

#include "absl/strings/string_view.h"

namespace reprise::fuzz {

// Returns whether the bytes were taken; refusing them is no fault.
bool FeedOnnx(absl::string_view bytes);  // a model file: the importer
bool FeedLoad(absl::string_view bytes);  // a model file: all that loading does
bool FeedGguf(absl::string_view bytes);  // a GGUF file: members, tensors, the graph it stands for
bool FeedGraphText(absl::string_view bytes);  // the text form of a graph
// Feeds the payload of a record of the recipe store, after a checksum that fits: as a recipe that
// binds again, as a bundle, as timed kernels, as the text for people.
bool FeedRecord(absl::string_view bytes);

}  // namespace reprise::fuzz

// Changes of files that keep the bytes around them valid: a fuzzer that flips bytes of a message
// spends its time on lengths that do not fit.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "absl/strings/string_view.h"
#include "tests/fuzz/random_models/chance.h"

namespace reprise::fuzz {

// Changes one field, at any depth: a value, an entry more or fewer, two that swap places.
void MutateMessage(google::protobuf::Message& message, Chance& chance);
// Changes, cuts, doubles or moves bytes.
std::string MutateBytes(absl::string_view bytes, Chance& chance);
// Returns the bytes of an ONNX model with some fields changed; other bytes when they are none.
std::string MutateOnnx(absl::string_view bytes, Chance& chance);

}  // namespace reprise::fuzz

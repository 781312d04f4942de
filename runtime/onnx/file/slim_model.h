// A model without its weights: the part that protobuf parses.
//
// Parsing a whole model file would copy every weight. Instead the file is walked field by field;
// the bytes of `graph.initializer[i].raw_data` are left out of the copy that protobuf sees and
// remembered as a range of the file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

struct SlimModel {
  std::string bytes;  // a serialised onnx.ModelProto
  // One for each initializer, in order; data() is nullptr where it has no raw_data. Views of the
  // walked bytes.
  std::vector<absl::string_view> raw_data;
};

// INVALID_ARGUMENT, with the position, where the bytes are no protobuf message or end early.
absl::StatusOr<SlimModel> SlimDown(absl::string_view model);

}  // namespace reprise

// Files of recorded requests: a line of JSON for each shape, with how many requests had it.
//
//   {"model_name": "bert", "count": 3, "sizes": {"batch": 1, "sequence": 9},
//    "inputs": {"input_ids": "1x9", "attention_mask": "1x9"}}
//
// "sizes" has one for each axis of the model, by its label; the rest of a line is for people, and
// may be left out. No value of a tensor is in it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise::client {

struct RecordedShape {
  uint64_t count = 1;
  std::map<std::string, int64_t> sizes;       // keyed by axis
  std::map<std::string, std::string> inputs;  // "1x9", keyed by input
};

// Returns a line, with its end.
std::string RecordedLine(const std::string& model, const RecordedShape& shape);

// Returns the shapes of `model` in the file; lines that name no model count for any,
// and all do where `model` is empty. NOT_FOUND
// where the file cannot be read, or has none of the model; INVALID_ARGUMENT names the line that is
// no shape.
absl::StatusOr<std::vector<RecordedShape>> ReadRecordedFile(const std::string& path,
                                                            const std::string& model);

}  // namespace reprise::client

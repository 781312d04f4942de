// A case as text that a person reads and `--case` reads back.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tests/fuzz/random_models/draw_model.h"

namespace reprise::fuzz {

// Returns the graph's text form after lines of comment:
//
//   # request batch=2 sequence=5
//   # contents 17, packed
//   graph { ...
std::string CaseText(const TestCase& test);
absl::StatusOr<TestCase> ParseCase(const std::string& text);

}  // namespace reprise::fuzz

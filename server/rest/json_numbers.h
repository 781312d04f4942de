// Numbers that clients write into JSON, and JSON or its parser does not have.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace simdjson::dom {
class element;
}

namespace reprise {

// `json` with NaN, Infinity and -Infinity, which many libraries write, as texts, and whole numbers
// beyond 64 bits as floating ones. Other text that is no JSON stays as it is.
std::string WithPlainNumbers(absl::string_view json);

// Returns the number that a text is then; nullopt for any other element.
std::optional<double> OddNumber(const simdjson::dom::element& json);

}  // namespace reprise

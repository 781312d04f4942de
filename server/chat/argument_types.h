// ArgumentTypes: of each function the arguments that are texts, by the schemas of its tools.
//
// Calls that are written as tags have no quotes: only the schema tells the text "3" from a number.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace reprise {

class ArgumentTypes {
 public:
  // Nothing is known: what is JSON is taken for it.
  ArgumentTypes() = default;
  // `tools`: a JSON list as OpenAI has it. Tools that cannot be read are left out.
  explicit ArgumentTypes(absl::string_view tools);

  // Returns whether the schema of the argument allows a text, and nothing else but null.
  bool IsText(absl::string_view function, absl::string_view argument) const;

 private:
  std::set<std::pair<std::string, std::string>> texts_;
};

}  // namespace reprise

// TextWishes: the parameters of a request for tokens that concern texts in the place of ids.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/text/grammar.h"

namespace reprise {

struct TextWishes {
  std::vector<std::string> stops;  // end an answer
  bool include_stop = false;       // are told then
  bool skip_special = true;        // special tokens do not appear in texts
  bool add_special = true;         // the tokenizer's own, to a prompt
  std::optional<GrammarText> grammar;

  // Returns whether the answer depends on its text.
  bool any() const { return !stops.empty() || grammar.has_value(); }
};

}  // namespace reprise

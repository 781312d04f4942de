// TaggedArguments: the arguments of a call that are written as tags, as JSON, as the text comes:
//
//   <parameter=place>
//   Paris
//   </parameter>
//   </function>
//
// becomes {"place": "Paris"}. Values are texts where the schema says so, or where they are not
// JSON. Texts are told as they come, other values at their end.
//
// Threads: one at a time.
#pragma once

#include <string>
#include <utility>

#include "server/chat/argument_types.h"

namespace reprise {

class TaggedArguments {
 public:
  // `types` outlives it; `function` is called.
  TaggedArguments(const ArgumentTypes& types, std::string function)
      : types_(types), function_(std::move(function)) {}

  // Consumes as much as it can of the front of `text`, and appends its JSON to `json`. Returns
  // whether the call has ended; if not, more text is needed.
  bool Take(std::string& text, std::string& json);

 private:
  enum class Step { kOn, kMore, kEnd };
  Step Between(std::string& text, std::string& json);
  Step Value(std::string& text, std::string& json);

  const ArgumentTypes& types_;
  const std::string function_;
  bool has_any_ = false;   // an argument has begun
  bool in_value_ = false;  // the text is a part of an argument
  bool is_begun_ = false;  // the value's first letter was looked at
  bool is_text_ = false;   // the value
};

}  // namespace reprise

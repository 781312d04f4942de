// ToolCallReader: calls of tools in the text of an answer, as the text comes.
//
// Everything else is content; an object that turns out to be no call is content as a whole. The
// parts joined are the same wherever the text was cut.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/chat/argument_types.h"
#include "server/chat/tagged_arguments.h"
#include "server/chat/tool_forms.h"

namespace reprise {

// A part of a call.
struct ToolCallPart {
  int64_t index = 0;
  std::string name;       // empty in later parts
  std::string arguments;  // JSON
};

struct ToolCallParts {
  std::string content;
  std::vector<ToolCallPart> calls;
};

class ToolCallReader {
 public:
  // `form` outlives it, and so does `types`, which forms with tags ask.
  ToolCallReader(const ToolForm& form, const ArgumentTypes& types) : form_(form), types_(types) {}

  ToolCallParts Push(absl::string_view text);
  // Takes the end of the text.
  ToolCallParts Finish();
  // Calls that have begun.
  int64_t calls() const { return calls_; }

 private:
  enum class State { kBegin, kContent, kAround, kName, kObject, kArguments, kTags, kTail };

  // Consumes as much as it can of the front of held_. False: more text is needed.
  bool Step(bool ended, ToolCallParts& parts);
  bool Begin(bool ended, ToolCallParts& parts);
  bool Content(bool ended, ToolCallParts& parts);
  bool Around(bool ended, ToolCallParts& parts);
  bool Name(ToolCallParts& parts);
  bool Object(ToolCallParts& parts);
  bool Arguments(ToolCallParts& parts);
  bool TaggedName(ToolCallParts& parts);
  bool Tags(ToolCallParts& parts);
  bool Tail();
  // Begins the call `name`; its arguments follow in held_.
  void BeginCall(std::string name, ToolCallParts& parts);
  // Moves the front of held_ to the text read since the calls began.
  void Drop(size_t size);

  const ToolForm& form_;
  const ArgumentTypes& types_;
  State state_ = State::kBegin;
  std::string held_;    // not read yet
  std::string unsure_;  // read, and content if no call comes of it
  int64_t calls_ = 0;
  bool in_object_ = false;  // the arguments are a member of an object
  // The place in the arguments.
  int64_t depth_ = 0;
  bool in_text_ = false, escaped_ = false;
  std::optional<TaggedArguments> tags_;
};

}  // namespace reprise

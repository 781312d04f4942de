// ToolForm: how the models of a family write that they call a tool.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/hub/text_package.h"

namespace reprise {

struct ToolForm {
  const char* name;  // "hermes"
  const char* mark;  // a template that has this text is of the family
  // The texts that calls begin with.
  std::vector<const char*> begins;
  // Texts around calls, which mean nothing.
  std::vector<const char*> around = {};
  // An answer that begins with a brace or a bracket is calls, too.
  bool plain = false;
  // A call is its name and then its arguments; otherwise an object with both.
  bool named = false;
  // Texts between the parts in front of the arguments, of which the last one is the name.
  std::vector<const char*> separators = {};
  // Text between the name and the id of a call; null: calls have none.
  const char* id_mark = nullptr;
  // A call is <function=NAME> with a <parameter=NAME> for each argument.
  bool tagged = false;
  // The template takes ids of nine letters and digits alone.
  bool short_ids = false;
};

// Returns the form of a family by its template; the form of a plain object where it contains no
// text of a family.
const ToolForm& ToolFormOf(absl::string_view chat_template);
// Returns the form by the template that conversations with tools get.
const ToolForm& ToolFormOf(const TextPackage& package);
// Returns the form that a grammar forces: a list of objects {"name", "arguments"}, nothing else.
const ToolForm& ForcedToolForm();

}  // namespace reprise

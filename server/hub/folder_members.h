// THE table of members of a folder's JSON files that decide about texts, and how each is treated:
// it is read, it is refused by name, or it decides nothing about an answer. docs/texts.md has its
// rows.
//
// A member that the table does not have falls under the row "*" of its file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace reprise {

enum class MemberUse {
  kRead,       // a value of another type than `values` names is refused; null is none
  kOnly,       // a value that is not in `values` is refused
  kOnlyAlone,  // the same where the folder has no tokenizer.json; that one decides by itself
  kUnread,
};

struct FolderMember {
  const char* file;    // as docs name it; a module's is "Dense/config.json"
  const char* member;  // "*": every other one
  MemberUse use;
  const char* values;  // kRead: types, "text|list"; kOnly, kOnlyAlone: a list in JSON
  const char* says;    // its row in docs
};

absl::Span<const FolderMember> FolderMembers();

// Errors: UNIMPLEMENTED for a member or a value that is not supported, INVALID_ARGUMENT for one of
// another type, each with `path`, the member and its value. `json`: anything but an object passes
// where it is null. `alone`: the folder has no tokenizer.json.
absl::Status CheckMembers(absl::string_view file, const std::string& path,
                          const nlohmann::json& json, bool alone = false);

}  // namespace reprise

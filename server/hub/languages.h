// THE table of the languages that Whisper's vocabularies have tokens for.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace reprise {

struct Language {
  absl::string_view code;  // ISO 639: "de"
  absl::string_view name;  // "german"
};

absl::Span<const Language> Languages();

// Returns the language of a code or a name in any case; null: there is none.
const Language* FindLanguage(absl::string_view code_or_name);

}  // namespace reprise

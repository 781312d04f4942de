// ForcedCalls: the grammar of an answer that has to call tools: a list of {"name", "arguments"} and
// nothing else, as ForcedToolForm reads it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/text/grammar.h"

namespace simdjson::dom {
class array;
}

namespace reprise {

// `tools`: as OpenAI's clients send them. `only`: the one that is called; empty: any. `several`:
// more than one call is allowed. Errors: INVALID_ARGUMENT for a tool without a name, or where none
// is named `only`.
absl::StatusOr<GrammarText> ForcedCalls(const simdjson::dom::array& tools, const std::string& only,
                                        bool several);

}  // namespace reprise

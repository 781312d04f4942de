// How nodes of each op are drawn: a table of an op and a function that adds one to a draft.
//
// A template picks operands from the draft and makes the others that the op needs. It returns false
// where nothing fits; nodes that it has added until then are left unused.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/fuzz/random_models/model_draft.h"

namespace reprise::fuzz {

struct OpTemplate {
  absl::string_view op;
  bool (*draw)(ModelDraft& draft, absl::string_view op);
};

absl::Span<const OpTemplate> ElementwiseTemplates();
absl::Span<const OpTemplate> MovementTemplates();
absl::Span<const OpTemplate> GatherTemplates();
absl::Span<const OpTemplate> ReduceTemplates();
absl::Span<const OpTemplate> ProductTemplates();
absl::Span<const OpTemplate> WindowTemplates();
absl::Span<const OpTemplate> QuantizedTemplates();
absl::Span<const OpTemplate> AttentionTemplates();
absl::Span<const OpTemplate> DataTemplates();
// Whole layers over tokens as exporters write them.
absl::Span<const OpTemplate> PatternTemplates();
absl::Span<const OpTemplate> RareTemplates();
// Numbers made of sizes, and nodes that depend on them: branches, positions, counts.
absl::Span<const OpTemplate> SizeTemplates();

// Adds a node, or the nodes that belong to one.
bool DrawSomething(ModelDraft& draft);

}  // namespace reprise::fuzz

// From the form that an op had in an older opset to the newest, which op_table.cc defines.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/hash_map.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/vocabulary.h"
#include "runtime/ops/growing_types.h"

namespace reprise {

// The parts of a node that are text (see TextWalk).
struct DraftTexts {
  const Vocabulary* vocabulary = nullptr;  // has all texts of the file; never null in a rewrite
  HashSet<std::string> attributes;         // tensors that hold places in it
  std::vector<bool> inputs;                // one flag per position, as the node has them
};

// A node on its way into the graph.
struct NodeDraft {
  std::string op;
  std::string name;
  int64_t version = 0;  // version of the opset of its domain
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<std::string> outputs;  // empty: left out
  GrowingTypes* types = nullptr;     // the types of its future graph; never null in a rewrite
  DraftTexts texts;
};

// Whether a row of the table says how the op of `draft` is brought to its newest form.
bool HasRewrite(const NodeDraft& draft);

// Brings `draft` to the newest form; may add constants and helper nodes to `graph`; the
// importer turns large constants into parameters. UNIMPLEMENTED for forms that cannot be brought
// there.
absl::Status RewriteToNewest(NodeDraft& draft, Graph& graph);

}  // namespace reprise

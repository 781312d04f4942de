// NodeDraft: a node of the file on its way into the graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/hash_map.h"
#include "runtime/graph/node.h"
#include "runtime/graph/vocabulary.h"
#include "runtime/ops/growing_types.h"

namespace reprise {

// The parts of a node that are text (see TextWalk).
struct DraftTexts {
  const Vocabulary* vocabulary = nullptr;  // has all texts of the file; never null in a rewrite
  HashSet<std::string> attributes;         // tensors that hold places in it
  std::vector<bool> inputs;                // one flag per position, as the node has them
};

struct NodeDraft {
  std::string op;
  std::string name;
  int64_t version = 0;  // version of the opset of its domain
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<std::string> outputs;  // empty: left out
  // Values that a rewrite has made for outputs, by position; kNone: the node gives that one.
  std::vector<ValueId> made;
  GrowingTypes* types = nullptr;  // the types of its future graph; never null in a rewrite
  DraftTexts texts;
};

// A rewrite of a node: it brings `draft` to its last step and adds the others to `graph`.
using NodeRewrite = absl::Status(NodeDraft& draft, Graph& graph);

}  // namespace reprise

// TextWalk: which values of a file are text, while its nodes are imported.
//
// The graph has no dtype of text: such a value is one of int64, which holds places in the model's
// vocabulary (see graph/vocabulary.h). So ops that only move elements take it as they are, and
// those that look texts up (LabelEncoder, OneHotEncoder) look up numbers. An op that would do
// anything else with text is UNIMPLEMENTED; so is one that would mix text and numbers.
//
// Numbers that a Cast writes as text are known by their index where the vocabulary has that text,
// and by none where it has not: enough for lookups, not for an answer.
//
// Ownership: owns the vocabulary with its model. Threads: one caller.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/hash_map.h"
#include "runtime/graph/node.h"
#include "runtime/graph/vocabulary.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

enum class TextKind {
  kNumbers,
  kText,
  kLookedUp,  // text that is known only where the vocabulary has it
};

class TextWalk {
 public:
  // Collects the texts of all of `model`, subgraphs and functions too.
  explicit TextWalk(const onnx::ModelProto& model);

  const std::shared_ptr<const Vocabulary>& vocabulary() const { return vocabulary_; }

  void Mark(ValueId value, TextKind kind);
  TextKind KindOf(ValueId value) const;
  const HashSet<ValueId>& values() const { return all_; }

  // Returns the facts about text that a rewrite of `draft`, the node `proto`, has to know.
  DraftTexts TextsOf(const onnx::NodeProto& proto, const NodeDraft& draft) const;
  // Returns the kinds of text that the outputs of `draft` will hold, by position; outputs beyond
  // the end of the list are numbers. To be asked before it is rewritten. `graph` has its inputs.
  // Errors: UNIMPLEMENTED for an operation that has no form over text.
  absl::StatusOr<std::vector<TextKind>> Results(const NodeDraft& draft, const Graph& graph) const;
  // Returns the same for an If as flattening made it; UNIMPLEMENTED for other control flow over
  // text.
  absl::StatusOr<std::vector<TextKind>> ResultsOfControl(const NodeDraft& draft) const;

 private:
  absl::StatusOr<TextKind> Moved(const NodeDraft& draft, uint32_t over) const;

  const std::shared_ptr<const Vocabulary> vocabulary_;
  HashSet<ValueId> all_;
  HashSet<ValueId> looked_up_;
};

// Returns whether `tensor` holds text.
bool HoldsText(const onnx::TensorProto& tensor);
// Returns whether the value of `node`, a Constant, is text.
bool IsTextConstant(const onnx::NodeProto& node);

}  // namespace reprise

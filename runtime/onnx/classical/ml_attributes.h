// Helpers that the ops of ai.onnx.ml share: how their attributes say things.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"
#include "runtime/ops/classical/class_scores.h"

namespace reprise {

// Returns the numbers of the attribute `name`, a list or (as `name`_as_tensor) a tensor; none if
// there is neither. `is_double` is set where the tensor is of f64.
std::vector<double> NumbersOf(const Attributes& attributes, const std::string& name,
                              bool* is_double = nullptr);

// Returns the attribute `name`, a list of floats; an empty one if there is none. Not copied:
// the reference is valid until a draft is given other attributes.
const std::vector<float>& FloatsOf(const Attributes& attributes, const char* name);

absl::StatusOr<ops::PostTransform> PostTransformOf(const Attributes& attributes);

// INVALID_ARGUMENT, naming both counts, unless there are `expected` elements of `name`.
absl::Status CheckLength(const std::string& name, size_t have, size_t expected);

// The answer of an encoder to an input that is no key, where the file does not state one.
inline constexpr char kUnusedText[] = "_Unused";

// Returns the attribute `name`, a list of texts; null where it is not there or empty.
const std::vector<std::string>* TextsIn(const Attributes& attributes, const std::string& name);

// Returns whether the list `name` of a LabelEncoder ("keys") is text, in either of its forms.
bool IsTextList(const NodeDraft& draft, const std::string& name);

// Their places in the vocabulary of the draft, which has them.
std::vector<int64_t> PlacesOf(const NodeDraft& draft, const std::vector<std::string>& texts);

// Returns the labels of a classifier: the attribute `ints`, or the indices of its texts.
std::vector<int64_t> ClassLabels(const NodeDraft& draft, const std::string& ints);

// Returns the dtype of `value` as far as it is known before shapes are: kUndefined where it is not.
DType TypeBefore(const NodeDraft& draft, const Graph& graph, ValueId value);
// `value` as floats (or doubles), with a Cast where it may be something else.
ValueId AsFloats(NodeDraft& draft, Graph& graph, ValueId value, DType dtype = DType::kFloat32);

// Turns the draft of a classifier, whose outputs are labels and scores, into ClassScores of `sums`;
// the draft of a regressor, whose only output is scores, with `labels` false.
void FinishWithScores(NodeDraft& draft, ValueId sums, const ops::ScoreRules& rules, bool labels);

// Reorders the outputs: a classifier has labels and scores, our ops have scores and labels.
void ScoresBeforeLabels(NodeDraft& draft);

absl::Status RequireOneInput(const NodeDraft& draft);

}  // namespace reprise

#include "runtime/onnx/classical/ml_attributes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/steps.h"

namespace reprise {

std::vector<double> NumbersOf(const Attributes& attributes, const std::string& name,
                              bool* is_double) {
  if (const auto* list = attributes.Get<std::vector<float>>(name)) {
    return std::vector<double>(list->begin(), list->end());
  }
  for (const std::string& given : {name, name + "_as_tensor"}) {
    const auto* tensor = attributes.Get<Tensor>(given);
    if (tensor == nullptr || tensor->num_elements() == 0) continue;
    if (is_double != nullptr && tensor->dtype() == DType::kFloat64) *is_double = true;
    return tensor->ToDoubles();
  }
  return {};
}

const std::vector<float>& FloatsOf(const Attributes& attributes, const char* name) {
  static const std::vector<float>* const kEmpty = new std::vector<float>();
  const auto* list = attributes.Get<std::vector<float>>(name);
  return list == nullptr ? *kEmpty : *list;
}

absl::StatusOr<ops::PostTransform> PostTransformOf(const Attributes& attributes) {
  constexpr std::pair<absl::string_view, ops::PostTransform> kNames[] = {
      {"NONE", ops::PostTransform::kNone},
      {"SOFTMAX", ops::PostTransform::kSoftmax},
      {"LOGISTIC", ops::PostTransform::kLogistic},
      {"SOFTMAX_ZERO", ops::PostTransform::kSoftmaxZero},
      {"PROBIT", ops::PostTransform::kProbit}};
  const std::string name = attributes.String("post_transform", "NONE");
  for (const auto& [known, post] : kNames) {
    if (known == name) return post;
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no post_transform '", name, "'"));
}

absl::Status CheckLength(const std::string& name, size_t have, size_t expected) {
  if (have == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("attribute '", name, "' has ", have, " elements, expected ", expected));
}

const std::vector<std::string>* TextsIn(const Attributes& attributes, const std::string& name) {
  const auto* list = attributes.Get<std::vector<std::string>>(name);
  return list == nullptr || list->empty() ? nullptr : list;
}

bool IsTextList(const NodeDraft& draft, const std::string& name) {
  return TextsIn(draft.attributes, name + "_strings") != nullptr ||
         draft.texts.attributes.contains(name + "_tensor");
}

std::vector<int64_t> PlacesOf(const NodeDraft& draft, const std::vector<std::string>& texts) {
  std::vector<int64_t> places;
  places.reserve(texts.size());
  for (const std::string& text : texts) {
    places.push_back(draft.texts.vocabulary->Find(text).value_or(Vocabulary::kNoText));
  }
  return places;
}

std::vector<int64_t> ClassLabels(const NodeDraft& draft, const std::string& ints) {
  const auto* texts = TextsIn(draft.attributes, "classlabels_strings");
  return texts == nullptr ? draft.attributes.Ints(ints) : PlacesOf(draft, *texts);
}

DType TypeBefore(const NodeDraft& draft, const Graph& graph, ValueId value) {
  const DType known = graph.value(value).dtype;
  return known != DType::kUndefined ? known : draft.types->Of(graph)[value];
}

ValueId AsFloats(NodeDraft& draft, Graph& graph, ValueId value, DType dtype) {
  if (TypeBefore(draft, graph, value) == dtype) return value;
  return Steps(draft, graph).Cast(value, dtype);
}

void ScoresBeforeLabels(NodeDraft& draft) {
  draft.outputs.resize(2);
  std::swap(draft.outputs[0], draft.outputs[1]);
  // The first result of a node is always there.
  if (draft.outputs[0].empty()) draft.outputs[0] = absl::StrCat(draft.outputs[1], "/scores");
  if (draft.outputs[1].empty()) draft.outputs.pop_back();
}

void FinishWithScores(NodeDraft& draft, ValueId sums, const ops::ScoreRules& rules, bool labels) {
  // A single class is answered by its number, or, where classes are texts, by their only one.
  ops::ScoreRules given = rules;
  if (given.labels.size() == 1 && TextsIn(draft.attributes, "classlabels_strings") != nullptr) {
    given.labels.push_back(given.labels[0]);
  }
  draft.op = ClassScoresOp::kName;
  draft.attributes = given.ToAttributes();
  draft.inputs = {sums};
  if (labels) ScoresBeforeLabels(draft);
}

absl::Status RequireOneInput(const NodeDraft& draft) {
  if (draft.inputs.size() == 1 && draft.inputs[0] != kNone) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("has ", draft.inputs.size(), " inputs, expected 1"));
}

}  // namespace reprise

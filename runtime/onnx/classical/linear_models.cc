#include "runtime/onnx/classical/linear_models.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/classical/ml_attributes.h"
#include "runtime/onnx/kit/steps.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/reduce/reduce_op.h"

namespace reprise {
namespace {

// Returns a list of one number a column, or of one for all of them.
ValueId Broadcast(Steps& steps, const std::vector<float>& values) {
  return values.size() == 1 ? steps.Float(values[0]) : steps.Floats("vector", values);
}

// Returns `x` as rows; a vector is one row.
ValueId Rows(NodeDraft& draft, Graph& graph, ValueId x) {
  const Value& value = graph.value(x);
  const bool vector = value.kind == Value::Kind::kInput
                          ? value.dims.size() == 1
                          : value.shape.has_value() && value.shape->size() == 1;
  if (!vector) return x;
  Steps steps(draft, graph);
  return steps.Add(UnsqueezeOp::kName, {x, steps.Int64s({0})});
}

// x times coefficients [targets, columns], transposed, plus intercepts.
absl::StatusOr<ValueId> Product(NodeDraft& draft, Graph& graph, int64_t targets) {
  const std::vector<float>& coefficients = FloatsOf(draft.attributes, "coefficients");
  const std::vector<float>& intercepts = FloatsOf(draft.attributes, "intercepts");
  if (targets < 1 || coefficients.empty() ||
      coefficients.size() % static_cast<size_t>(targets) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("attribute 'coefficients' has ",
                                                   coefficients.size(), " elements for ", targets,
                                                   " targets"));
  }
  Steps steps(draft, graph);
  const auto columns = static_cast<int64_t>(coefficients.size()) / targets;
  std::vector<ValueId> inputs = {
      Rows(draft, graph, AsFloats(draft, graph, draft.inputs[0])),
      steps.Constant("coefficients",
                     Tensor::FromVector(DType::kFloat32, {targets, columns}, coefficients))};
  if (!intercepts.empty()) {
    RETURN_IF_ERROR(CheckLength("intercepts", intercepts.size(), static_cast<size_t>(targets)));
    inputs.push_back(steps.Floats("intercepts", intercepts));
  }
  return steps.Add(GemmOp::kName, std::move(inputs), {{"transB", int64_t{1}}});
}

}  // namespace

absl::Status LinearRegressorInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  ops::ScoreRules rules;
  ASSIGN_OR_RETURN(rules.post, PostTransformOf(draft.attributes));
  ASSIGN_OR_RETURN(const ValueId y, Product(draft, graph, draft.attributes.Int("targets", 1)));
  if (rules.post != ops::PostTransform::kNone) {
    FinishWithScores(draft, y, rules, /*labels=*/false);
    return absl::OkStatus();
  }
  draft.op = IdentityOp::kName;
  draft.attributes = {};
  draft.inputs = {y};
  return absl::OkStatus();
}

absl::Status LinearClassifierInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  ops::ScoreRules rules;
  ASSIGN_OR_RETURN(rules.post, PostTransformOf(draft.attributes));
  rules.labels = ClassLabels(draft, "classlabels_ints");
  const auto classes = static_cast<int64_t>(rules.labels.size());
  const auto intercepts = static_cast<int64_t>(FloatsOf(draft.attributes, "intercepts").size());
  const int64_t targets = intercepts == 0 ? classes : intercepts;
  if (targets != classes && !(targets == 1 && classes == 2)) {
    return absl::InvalidArgumentError(absl::StrCat("attribute 'intercepts' has ", intercepts,
                                                   " elements for ", classes, " classes"));
  }
  rules.rule = targets == 1 && classes == 2 ? ops::ScoreRule::kOneLine : ops::ScoreRule::kLargest;
  ASSIGN_OR_RETURN(const ValueId y, Product(draft, graph, targets));
  FinishWithScores(draft, y, rules, /*labels=*/true);
  return absl::OkStatus();
}

// (x - offset) * scale
absl::Status ScalerInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  const std::vector<float> offset = FloatsOf(draft.attributes, "offset");
  const std::vector<float> scale = FloatsOf(draft.attributes, "scale");
  Steps steps(draft, graph);
  ValueId x = AsFloats(draft, graph, draft.inputs[0]);
  if (!offset.empty()) x = steps.Add(SubOp::kName, {x, Broadcast(steps, offset)});
  draft.op = MulOp::kName;
  draft.attributes = {};
  draft.inputs = {x, scale.empty() ? steps.Float(1) : Broadcast(steps, scale)};
  return absl::OkStatus();
}

// Divides a row by its largest element, the sum of its magnitudes, or its length; where that is 0
// the row stays.
absl::Status NormalizerInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  const std::string norm = draft.attributes.String("norm", "MAX");
  const char* op = norm == "MAX"  ? ReduceMaxOp::kName
                   : norm == "L1" ? ReduceL1Op::kName
                   : norm == "L2" ? ReduceL2Op::kName
                                  : nullptr;
  if (op == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("there is no norm '", norm, "'"));
  Steps steps(draft, graph);
  const ValueId x = AsFloats(draft, graph, draft.inputs[0]);
  const ValueId by = steps.Add(op, {x, steps.Int64s({-1})});
  const ValueId none = steps.Add(EqualOp::kName, {by, steps.Float(0)});
  draft.op = DivOp::kName;
  draft.attributes = {};
  draft.inputs = {x, steps.Add(WhereOp::kName, {none, steps.Float(1), by})};
  return absl::OkStatus();
}

absl::Status ImputerInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  const Attributes& attributes = draft.attributes;
  Steps steps(draft, graph);
  ValueId x = draft.inputs[0], missing = kNone, value = kNone;
  const std::vector<float>& floats = FloatsOf(attributes, "imputed_value_floats");
  const std::vector<int64_t> ints = attributes.Ints("imputed_value_int64s");
  if (!floats.empty()) {
    x = AsFloats(draft, graph, x);
    const float replaced = attributes.Float("replaced_value_float", 0);
    missing = std::isnan(replaced) ? steps.Add("IsNaN", {x})
                                   : steps.Add(EqualOp::kName, {x, steps.Float(replaced)});
    value = Broadcast(steps, floats);
  } else if (!ints.empty()) {
    if (TypeBefore(draft, graph, x) != DType::kInt64) x = steps.Cast(x, DType::kInt64);
    missing =
        steps.Add(EqualOp::kName, {x, steps.Int64(attributes.Int("replaced_value_int64", 0))});
    value = ints.size() == 1 ? steps.Int64(ints[0]) : steps.Int64s(ints);
  } else {
    return absl::InvalidArgumentError(
        "attribute 'imputed_value_floats' or 'imputed_value_int64s' is missing");
  }
  draft.op = WhereOp::kName;
  draft.attributes = {};
  draft.inputs = {missing, value, x};
  return absl::OkStatus();
}

absl::Status BinarizerInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  Steps steps(draft, graph);
  const ValueId x = AsFloats(draft, graph, draft.inputs[0]);
  const ValueId above =
      steps.Add(GreaterOp::kName, {x, steps.Float(draft.attributes.Float("threshold", 0))});
  return steps.Become(CastOp::kName, {above}, {{"to", ops::OnnxNumber(DType::kFloat32)}});
}

}  // namespace reprise

#include "runtime/onnx/rewrites/fused.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/steps.h"

namespace reprise {

// onnxruntime computes only two of the metrics that have a name there.
absl::Status CDistInSteps(NodeDraft& draft, Graph& graph) {
  Steps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1}));
  const std::string metric = draft.attributes.String("metric", "sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean") {
    return absl::UnimplementedError(
        absl::StrCat("metric '", metric, "' is not supported, only euclidean and sqeuclidean"));
  }
  const ValueId columns =
      steps.Add("Transpose", {steps.input(1)}, {{"perm", std::vector<int64_t>{1, 0}}});
  const std::vector<ValueId> rows_and_columns = {steps.input(0), columns};
  if (metric == "sqeuclidean") return steps.Become("reprise.Distances", rows_and_columns);
  return steps.Become("Sqrt", {steps.Add("reprise.Distances", rows_and_columns)});
}

// Conv, then the added value, then the activation, whose numbers are in a list.
absl::Status FusedConvInSteps(NodeDraft& draft, Graph& graph) {
  Steps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1}));
  const std::string activation = draft.attributes.String("activation", "");
  std::vector<float> numbers;
  if (const auto* list = draft.attributes.Get<std::vector<float>>("activation_params")) {
    numbers = *list;
  }
  draft.attributes.Erase("activation");
  draft.attributes.Erase("activation_params");
  const ValueId added = steps.input(3);
  ValueId y = steps.Add("Conv", {steps.input(0), steps.input(1), steps.input(2)},
                        std::move(draft.attributes));
  if (added != kNone) y = steps.Add("Add", {y, added});
  const auto number = [&](size_t i, float otherwise) {
    return i < numbers.size() ? numbers[i] : otherwise;
  };
  if (activation.empty()) return steps.Become("Identity", {y});
  if (activation == "Relu" || activation == "Tanh" || activation == "Sigmoid") {
    return steps.Become(activation, {y});
  }
  if (activation == "LeakyRelu") {
    return steps.Become(activation, {y}, {{"alpha", number(0, 0.01f)}});
  }
  if (activation == "HardSigmoid") {
    return steps.Become(activation, {y}, {{"alpha", number(0, 0.2f)}, {"beta", number(1, 0.5f)}});
  }
  if (activation == "Clip" && numbers.size() == 2) {
    std::vector<ValueId> bounds = {y};
    for (const float bound : numbers) bounds.push_back(steps.Float(bound));
    return steps.Become(activation, std::move(bounds));
  }
  return absl::UnimplementedError(
      absl::StrCat("activation '", activation, "' of ", numbers.size(), " numbers"));
}

// Gemm and the activation after it.
absl::Status FusedGemmInSteps(NodeDraft& draft, Graph& graph) {
  Steps steps(draft, graph);
  const std::string activation = draft.attributes.String("activation", "");
  Attributes of_activation;
  for (const auto& [from, to] : {std::pair{"activation_alpha", "alpha"},
                                 {"activation_beta", "beta"},
                                 {"activation_gamma", "gamma"}}) {
    if (const float* value = draft.attributes.Get<float>(from); value != nullptr) {
      of_activation.Set(to, *value);
    }
    draft.attributes.Erase(from);
  }
  draft.attributes.Erase("activation");
  const bool known = activation == "Relu" || activation == "LeakyRelu" || activation == "Tanh" ||
                     activation == "Sigmoid" || activation == "Softplus" ||
                     activation == "Softsign" || activation == "Elu" || activation == "HardSigmoid";
  if (!known) return absl::UnimplementedError(absl::StrCat("activation '", activation, "'"));
  for (size_t i = 0; i < draft.inputs.size(); ++i) RETURN_IF_ERROR(steps.Require({i}));
  const ValueId y = steps.Add("Gemm", std::move(draft.inputs), std::move(draft.attributes));
  return steps.Become(activation, {y}, std::move(of_activation));
}

// x over its norm along an axis; of zeros, zeros.
absl::Status LpNormalizationInSteps(NodeDraft& draft, Graph& graph) {
  Steps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0}));
  const int64_t p = draft.attributes.Int("p", 2);
  if (p != 1 && p != 2) return absl::InvalidArgumentError(absl::StrCat("there is no norm ", p));
  const ValueId x = draft.inputs[0];
  const ValueId axes = steps.Int64s({draft.attributes.Int("axis", -1)});
  const ValueId norm = steps.Add(p == 1 ? "ReduceL1" : "ReduceL2", {x, axes});
  const ValueId none = steps.Add("Equal", {norm, steps.FloatLike(0, x)});
  const ValueId by = steps.Add("Where", {none, steps.FloatLike(1, x), norm});
  return steps.Become("Div", {x, by});
}

// (x - mean) / (sqrt(mean of (x - mean)^2) + 1e-9), over axes of choice.
absl::Status MeanVarianceInSteps(NodeDraft& draft, Graph& graph) {
  Steps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0}));
  const ValueId x = draft.inputs[0];
  std::vector<int64_t> over = draft.attributes.Ints("axes", {0, 2, 3});
  if (draft.version < 9) {
    over = draft.attributes.Int("across_channels", 0) != 0 ? std::vector<int64_t>{0, 1, 2, 3}
                                                           : std::vector<int64_t>{0, 2, 3};
  }
  const ValueId axes = steps.Int64s(over);
  const ValueId mean = steps.Add("ReduceMean", {x, axes});
  const ValueId centred = steps.Add("Sub", {x, mean});
  const ValueId variance = steps.Add("ReduceMean", {steps.Add("Mul", {centred, centred}), axes});
  const ValueId deviation =
      steps.Add("Add", {steps.Add("Sqrt", {variance}), steps.FloatLike(1e-9, x)});
  return steps.Become("Div", {centred, deviation});
}

// BatchNormalization in training mode normalises by the mean and the variance of its own input, as
// networks do with the weights of their convolutions. Its other results, the averages over the
// steps of a training, are not read.
absl::Status BatchStatisticsInSteps(NodeDraft& draft, Graph& graph) {
  if (draft.attributes.Int("training_mode", 0) == 0) return absl::OkStatus();
  Steps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1, 2}));
  const ValueId x = draft.inputs[0];
  const ValueId lines = steps.Add("Reshape", {x, steps.Int64s({0, 0, -1})});
  const ValueId axes = steps.Int64s({0, 2});
  const ValueId mean = steps.Add("ReduceMean", {lines, axes});
  const ValueId centred = steps.Add("Sub", {lines, mean});
  const ValueId variance = steps.Add("ReduceMean", {steps.Add("Mul", {centred, centred}), axes});
  const auto one_each = [&](ValueId value) {
    return steps.Add("Reshape", {value, steps.Int64s({-1})});
  };
  draft.outputs.resize(1);
  return steps.Become("BatchNormalization",
                      {x, draft.inputs[1], draft.inputs[2], one_each(mean), one_each(variance)},
                      {{"epsilon", draft.attributes.Float("epsilon", 1e-5f)}});
}

}  // namespace reprise

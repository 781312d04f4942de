#include "runtime/onnx/rewrites_fused.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

ValueId Add(Graph& graph, absl::string_view op, std::vector<ValueId> inputs,
            Attributes attributes = {}) {
  const NodeId node = graph.AddNode(op, std::move(inputs), std::move(attributes));
  return graph.node(node).outputs[0];
}

absl::Status RequireInput(const NodeDraft& draft, size_t i) {
  if (i < draft.inputs.size() && draft.inputs[i] != kNone) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input ", i, " is left out"));
}

// The op becomes `activation` of `x`.
absl::Status Activate(NodeDraft& draft, const std::string& activation, Attributes attributes,
                      std::vector<ValueId> inputs) {
  draft.op = activation;
  draft.attributes = std::move(attributes);
  draft.inputs = std::move(inputs);
  return absl::OkStatus();
}

// `value` in the dtype of `like`.
ValueId Constant(Graph& graph, float value, ValueId like) {
  return Add(graph, "CastLike", {graph.AddConstant("", Tensor::FloatScalar(value)), like});
}

}  // namespace

// Conv, what is added to it and the activation behind. Numbers of the activation are in a list.
absl::Status FusedConvInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireInput(draft, 0));
  RETURN_IF_ERROR(RequireInput(draft, 1));
  const std::string activation = draft.attributes.String("activation", "");
  std::vector<float> numbers;
  if (const auto* list = draft.attributes.Get<std::vector<float>>("activation_params")) {
    numbers = *list;
  }
  draft.attributes.Erase("activation");
  draft.attributes.Erase("activation_params");
  std::vector<ValueId> inputs = draft.inputs;
  const ValueId added = inputs.size() > 3 ? inputs[3] : kNone;
  if (inputs.size() > 3) inputs.resize(3);
  if (inputs.back() == kNone) inputs.pop_back();
  ValueId y = Add(graph, "Conv", std::move(inputs), std::move(draft.attributes));
  if (added != kNone) y = Add(graph, "Add", {y, added});
  const auto number = [&](size_t i, float otherwise) {
    return i < numbers.size() ? numbers[i] : otherwise;
  };
  if (activation.empty()) return Activate(draft, "Identity", {}, {y});
  if (activation == "Relu" || activation == "Tanh" || activation == "Sigmoid") {
    return Activate(draft, activation, {}, {y});
  }
  if (activation == "LeakyRelu") {
    return Activate(draft, activation, {{"alpha", number(0, 0.01f)}}, {y});
  }
  if (activation == "HardSigmoid") {
    return Activate(draft, activation, {{"alpha", number(0, 0.2f)}, {"beta", number(1, 0.5f)}},
                    {y});
  }
  if (activation == "Clip" && numbers.size() == 2) {
    std::vector<ValueId> bounds = {y};
    for (const float bound : numbers) {
      bounds.push_back(graph.AddConstant("", Tensor::FloatScalar(bound)));
    }
    return Activate(draft, activation, {}, std::move(bounds));
  }
  return absl::UnimplementedError(
      absl::StrCat("activation '", activation, "' of ", numbers.size(), " numbers"));
}

// Gemm and the activation behind it.
absl::Status FusedGemmInSteps(NodeDraft& draft, Graph& graph) {
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
  for (size_t i = 0; i < draft.inputs.size(); ++i) RETURN_IF_ERROR(RequireInput(draft, i));
  const ValueId y = Add(graph, "Gemm", std::move(draft.inputs), std::move(draft.attributes));
  return Activate(draft, activation, std::move(of_activation), {y});
}

// x over its norm along an axis; of zeros, zeros.
absl::Status LpNormalizationInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireInput(draft, 0));
  const int64_t p = draft.attributes.Int("p", 2);
  if (p != 1 && p != 2) return absl::InvalidArgumentError(absl::StrCat("there is no norm ", p));
  const ValueId x = draft.inputs[0];
  const ValueId axes = graph.AddConstant("", Tensor::Int64s({draft.attributes.Int("axis", -1)}));
  const ValueId norm = Add(graph, p == 1 ? "ReduceL1" : "ReduceL2", {x, axes});
  const ValueId none = Add(graph, "Equal", {norm, Constant(graph, 0, x)});
  const ValueId by = Add(graph, "Where", {none, Constant(graph, 1, x), norm});
  draft.op = "Div";
  draft.attributes = {};
  draft.inputs = {x, by};
  return absl::OkStatus();
}

// (x - mean) / (sqrt(mean of (x - mean)^2) + 1e-9), over axes of choice.
absl::Status MeanVarianceInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireInput(draft, 0));
  const ValueId x = draft.inputs[0];
  std::vector<int64_t> over = draft.attributes.Ints("axes", {0, 2, 3});
  if (draft.version < 9) {
    over = draft.attributes.Int("across_channels", 0) != 0 ? std::vector<int64_t>{0, 1, 2, 3}
                                                           : std::vector<int64_t>{0, 2, 3};
  }
  const ValueId axes = graph.AddConstant("", Tensor::Int64s(over));
  const ValueId mean = Add(graph, "ReduceMean", {x, axes});
  const ValueId centred = Add(graph, "Sub", {x, mean});
  const ValueId variance = Add(graph, "ReduceMean", {Add(graph, "Mul", {centred, centred}), axes});
  const ValueId deviation =
      Add(graph, "Add", {Add(graph, "Sqrt", {variance}), Constant(graph, 1e-9f, x)});
  draft.op = "Div";
  draft.attributes = {};
  draft.inputs = {centred, deviation};
  return absl::OkStatus();
}

}  // namespace reprise

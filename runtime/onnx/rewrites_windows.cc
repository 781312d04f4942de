#include "runtime/onnx/rewrites_windows.h"

#include <numbers>

#include "runtime/onnx/steps.h"

namespace reprise {
namespace {

constexpr int64_t kFloat = 1;  // ONNX's number

// constant + first * cos(2 pi n / size) + second * cos(4 pi n / size) for n < size, of the size
// less one where the window is symmetric.
absl::Status Window(NodeDraft& draft, Graph& graph, double constant, double first, double second) {
  if (draft.inputs.size() != 1 || draft.inputs[0] == kNone) {
    return absl::InvalidArgumentError("does not have one input");
  }
  Steps steps(graph);
  const ValueId count = steps.Add("Cast", {draft.inputs[0]}, {{"to", int64_t{7}}});
  const ValueId places = steps.ToFloat(steps.Add("Range", {steps.Int64(0), count, steps.Int64(1)}));
  ValueId size = steps.ToFloat(count);
  if (draft.attributes.Int("periodic", 1) == 0) size = steps.Add("Sub", {size, steps.Float(1)});
  const auto wave = [&](double turns, double height) {
    const ValueId angle = steps.Add(
        "Div", {steps.Add("Mul", {places, steps.Float(turns * 2 * std::numbers::pi)}), size});
    return steps.Add("Mul", {steps.Add("Cos", {angle}), steps.Float(height)});
  };
  ValueId sum = steps.Add("Add", {wave(1, first), steps.Float(constant)});
  if (second != 0) sum = steps.Add("Add", {sum, wave(2, second)});
  draft.op = "Cast";
  draft.inputs = {sum};
  draft.attributes = {{"to", draft.attributes.Int("output_datatype", kFloat)}};
  return absl::OkStatus();
}

}  // namespace

absl::Status BlackmanWindowInSteps(NodeDraft& draft, Graph& graph) {
  return Window(draft, graph, 0.42, -0.5, 0.08);
}

absl::Status HammingWindowInSteps(NodeDraft& draft, Graph& graph) {
  return Window(draft, graph, 25.0 / 46, 25.0 / 46 - 1, 0);
}

absl::Status HannWindowInSteps(NodeDraft& draft, Graph& graph) {
  return Window(draft, graph, 0.5, -0.5, 0);
}

}  // namespace reprise

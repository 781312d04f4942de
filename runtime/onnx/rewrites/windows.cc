#include "runtime/onnx/rewrites/windows.h"

#include <numbers>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/steps.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/movement/shape_op.h"

namespace reprise {
namespace {

// constant + first * cos(2 pi n / size) + second * cos(4 pi n / size) for n < size, of the size
// less one where the window is symmetric.
absl::Status Window(NodeDraft& draft, Graph& graph, double constant, double first, double second) {
  Steps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0}));
  const ValueId count = steps.Cast(steps.input(0), DType::kInt64);
  const ValueId places =
      steps.ToFloat(steps.Add(RangeOp::kName, {steps.Int64(0), count, steps.Int64(1)}));
  ValueId size = steps.ToFloat(count);
  if (draft.attributes.Int("periodic", 1) == 0)
    size = steps.Add(SubOp::kName, {size, steps.Float(1)});
  const auto wave = [&](double turns, double height) {
    const ValueId angle = steps.Add(
        DivOp::kName,
        {steps.Add(MulOp::kName, {places, steps.Float(turns * 2 * std::numbers::pi)}), size});
    return steps.Add(MulOp::kName, {steps.Add("Cos", {angle}), steps.Float(height)});
  };
  ValueId sum = steps.Add(AddOp::kName, {wave(1, first), steps.Float(constant)});
  if (second != 0) sum = steps.Add(AddOp::kName, {sum, wave(2, second)});
  const int64_t dtype = draft.attributes.Int("output_datatype", ops::OnnxNumber(DType::kFloat32));
  return steps.Become(CastOp::kName, {sum}, {{"to", dtype}});
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

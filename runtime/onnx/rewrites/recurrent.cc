#include "runtime/onnx/rewrites/recurrent.h"

#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/steps.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/recurrent/recurrent_op.h"

namespace reprise {

// X, W [D, size, 4 * hidden], R [D, hidden, 4 * hidden], B, sequence_lens, initial_h, initial_c, P
// as an LSTM has them; then scale and zero point of W and of R, [D] or [D, 4 * hidden] each.
absl::Status DynamicQuantizeLstmInSteps(NodeDraft& draft, Graph& graph) {
  Steps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1, 2, 8, 9, 10, 11}));
  // [D, 4 * hidden, size], as an LSTM has it.
  const auto floats = [&](size_t weight, size_t scale) {
    // [D, 1, 1] or [D, 1, 4 * hidden].
    const auto spread = [&](ValueId value) {
      const ValueId shape =
          steps.Concat({steps.Dims(steps.input(weight), 0, 1), steps.Int64s({1, -1})});
      return steps.Add(ReshapeOp::kName, {steps.ToFloat(value), shape});
    };
    const ValueId whole = steps.ToFloat(steps.input(weight));
    const ValueId shifted = steps.Add(SubOp::kName, {whole, spread(steps.input(scale + 1))});
    const ValueId scaled = steps.Add(MulOp::kName, {shifted, spread(steps.input(scale))});
    return steps.Add(TransposeOp::kName, {scaled}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  };
  std::vector<ValueId> inputs(draft.inputs.begin(), draft.inputs.begin() + 8);
  inputs[1] = floats(1, 8);
  inputs[2] = floats(2, 10);
  return steps.Become(LstmOp::kName, std::move(inputs), std::move(draft.attributes));
}

}  // namespace reprise

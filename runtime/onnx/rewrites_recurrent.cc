#include "runtime/onnx/rewrites_recurrent.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/onnx/steps.h"

namespace reprise {

// X, W [D, size, 4 * hidden], R [D, hidden, 4 * hidden], B, sequence_lens, initial_h, initial_c, P
// as an LSTM has them; then scale and zero point of W and of R, [D] or [D, 4 * hidden] each.
absl::Status DynamicQuantizeLstmInSteps(NodeDraft& draft, Graph& graph) {
  const auto input = [&](size_t i) { return i < draft.inputs.size() ? draft.inputs[i] : kNone; };
  for (const size_t needed : {0, 1, 2, 8, 9, 10, 11}) {
    if (input(needed) == kNone) {
      return absl::InvalidArgumentError(absl::StrCat("input ", needed, " is left out"));
    }
  }
  Steps steps(graph);
  // [D, 4 * hidden, size], as an LSTM has it.
  const auto floats = [&](size_t weight, size_t scale) {
    // [D, 1, 1] or [D, 1, 4 * hidden].
    const auto spread = [&](ValueId value) {
      const ValueId shape = steps.Concat({steps.Dims(input(weight), 0, 1), steps.Int64s({1, -1})});
      return steps.Add("Reshape", {steps.ToFloat(value), shape});
    };
    const ValueId whole = steps.ToFloat(input(weight));
    const ValueId shifted = steps.Add("Sub", {whole, spread(input(scale + 1))});
    const ValueId scaled = steps.Add("Mul", {shifted, spread(input(scale))});
    return steps.Add("Transpose", {scaled}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  };
  const ValueId w = floats(1, 8), r = floats(2, 10);
  draft.op = "LSTM";
  draft.inputs.resize(8, kNone);
  draft.inputs[1] = w;
  draft.inputs[2] = r;
  while (draft.inputs.back() == kNone) draft.inputs.pop_back();
  return absl::OkStatus();
}

}  // namespace reprise

#include "runtime/onnx/rewrites_audio.h"

#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr int64_t kFloat = 1;  // ONNX's number
// Of the waves of a transform, 64 MB: those of the lower half of all frequencies in frames of 4096.
constexpr int64_t kMostElements = 2 * (4096 / 2 + 1) * 4096;

class Steps {
 public:
  explicit Steps(Graph& graph) : graph_(graph) {}

  ValueId Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const NodeId node = graph_.AddNode(op, std::move(inputs), std::move(attributes));
    return graph_.node(node).outputs[0];
  }
  ValueId Float(double value) {
    return graph_.AddConstant("", Tensor::FloatScalar(static_cast<float>(value)));
  }
  ValueId Int64(int64_t value) {
    return graph_.AddConstant("", Tensor::FromVector<int64_t>(DType::kInt64, {}, {value}));
  }
  ValueId Int64s(std::vector<int64_t> values) {
    return graph_.AddConstant("", Tensor::Int64s(values));
  }
  ValueId ToFloat(ValueId value) { return Add("Cast", {value}, {{"to", kFloat}}); }

 private:
  Graph& graph_;
};

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

// The one integer that `value` is known to be.
std::optional<int64_t> KnownInt(const Graph& graph, ValueId value) {
  const Tensor* tensor = value == kNone ? nullptr : graph.ConstantOf(value);
  if (tensor == nullptr || tensor->num_elements() != 1) return std::nullopt;
  const auto numbers = tensor->ToInt64s();
  return numbers.ok() ? std::optional(numbers->front()) : std::nullopt;
}

// [2 * bins, 1, frame]: cosines, then negative sines, of whole turns that are taken off exactly.
Tensor Waves(int64_t bins, int64_t frame) {
  std::vector<float> cosines, sines;  // of one turn
  for (int64_t i = 0; i < frame; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(frame);
    cosines.push_back(static_cast<float>(std::cos(angle)));
    sines.push_back(static_cast<float>(-std::sin(angle)));
  }
  std::vector<float> waves;
  waves.reserve(2 * bins * frame);
  for (const std::vector<float>* turn : {&cosines, &sines}) {
    for (int64_t bin = 0; bin < bins; ++bin) {
      for (int64_t i = 0; i < frame; ++i) waves.push_back((*turn)[bin * i % frame]);
    }
  }
  return Tensor::FromVector(DType::kFloat32, {2 * bins, 1, frame}, waves);
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

// signal [batch, length, 1], frame_step, window?, frame_length?: a convolution whose kernels are
// the waves of all frequencies under the window. The result is [batch, frames, bins, 2].
absl::Status StftInSteps(NodeDraft& draft, Graph& graph) {
  const auto input = [&](size_t i) { return i < draft.inputs.size() ? draft.inputs[i] : kNone; };
  if (input(0) == kNone || input(1) == kNone) {
    return absl::InvalidArgumentError("its signal or frame step is left out");
  }
  const ValueId signal = input(0), window = input(2);
  const std::optional<int64_t> step = KnownInt(graph, input(1));
  std::optional<int64_t> frame = KnownInt(graph, input(3));
  if (input(3) == kNone && window != kNone && graph.value(window).shape.has_value() &&
      graph.value(window).shape->size() == 1) {
    frame = graph.value(window).shape->front();
  }
  if (!step.has_value() || !frame.has_value()) {
    return absl::UnimplementedError("a frame step or length that is computed");
  }
  if (*step < 1 || *frame < 1) {
    return absl::InvalidArgumentError(absl::StrCat("frames of ", *frame, " in steps of ", *step));
  }
  const int64_t bins = draft.attributes.Int("onesided", 1) != 0 ? *frame / 2 + 1 : *frame;
  if (*frame > kMostElements / 2 / bins) {
    return absl::UnimplementedError(absl::StrCat("frames of ", *frame, " with ", bins,
                                                 " frequencies, the limit is ", kMostElements / 2,
                                                 " elements"));
  }
  Steps steps(graph);
  // The importer makes parameters of large constants: the waves are prepared once.
  ValueId waves = graph.AddConstant(absl::StrCat(draft.name, "/waves"), Waves(bins, *frame));
  waves = steps.Add("CastLike", {waves, signal});
  if (window != kNone) waves = steps.Add("Mul", {waves, window});
  const ValueId rows = steps.Add("Transpose", {signal}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const ValueId sums = steps.Add("Conv", {rows, waves}, {{"strides", std::vector<int64_t>{*step}}});
  const ValueId parts = steps.Add("Reshape", {sums, steps.Int64s({0, 2, bins, -1})});
  draft.op = "Transpose";
  draft.inputs = {parts};
  draft.attributes = {{"perm", std::vector<int64_t>{0, 3, 2, 1}}};
  return absl::OkStatus();
}

}  // namespace reprise

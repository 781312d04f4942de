#include "runtime/onnx/rewrites/fourier.h"

#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/steps.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/windows/conv_op.h"

namespace reprise {
namespace {

// No signal has more dims than these; a list of its axes is made below.
constexpr int64_t kMostDims = 64;
// The waves of a transform take up to 64 MB: the lower half of all frequencies in frames of 4096.
constexpr int64_t kMostElements = 2 * (4096 / 2 + 1) * 4096;

// One turn in `size` steps: turns of waves are whole multiples, taken off exactly.
struct Turn {
  explicit Turn(int64_t size) {
    for (int64_t i = 0; i < size; ++i) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size);
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
  }
  std::vector<double> cosines, sines;
};

Tensor MakeTensor(DType dtype, Shape shape, const std::vector<double>& numbers) {
  if (dtype == DType::kFloat64) return Tensor::FromVector(dtype, std::move(shape), numbers);
  return Tensor::FromVector(DType::kFloat32, std::move(shape),
                            std::vector<float>(numbers.begin(), numbers.end()));
}

// Waves are float64 for float64 signals, else float32.
DType WaveType(const Graph& graph, ValueId signal) {
  return graph.value(signal).dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

// [2 * bins, 1, frame]: cosines, then negative sines.
Tensor FrameWaves(DType dtype, int64_t bins, int64_t frame) {
  const Turn turn(frame);
  std::vector<double> waves;
  waves.reserve(2 * bins * frame);
  for (const bool sine : {false, true}) {
    for (int64_t bin = 0; bin < bins; ++bin) {
      for (int64_t i = 0; i < frame; ++i) {
        const int64_t at = bin * i % frame;
        waves.push_back(sine ? -turn.sines[at] : turn.cosines[at]);
      }
    }
  }
  return MakeTensor(dtype, {2 * bins, 1, frame}, waves);
}

// A transform of `length` samples along one axis. Where it is one-sided, the part of the spectrum
// that is left out mirrors the rest, since its signal is real: forward the results, inverse the
// operands.
struct Transform {
  int64_t length;
  bool inverse, onesided;

  int64_t half() const { return length / 2 + 1; }
  int64_t rows() const { return inverse && onesided ? half() : length; }
  int64_t bins() const { return !inverse && onesided ? half() : length; }
  int64_t parts_in() const { return !inverse && onesided ? 1 : 2; }  // at most: real, imaginary
  int64_t parts_out() const { return inverse && onesided ? 1 : 2; }
  int64_t columns() const { return bins() * parts_out(); }

  bool Fits() const {
    return length <= kMostElements && rows() * parts_in() <= kMostElements / columns();
  }
  // Returns [rows, parts_in, columns]: the weight of each part of each operand in each part of each
  // result.
  Tensor Waves(DType dtype) const {
    const Turn turn(length);
    const double scale = inverse ? 1.0 / static_cast<double>(length) : 1.0;
    std::vector<double> waves;
    waves.reserve(rows() * parts_in() * columns());
    for (int64_t row = 0; row < rows(); ++row) {
      // A mirrored operand counts twice.
      const bool mirrored = inverse && onesided && row != 0 && 2 * row != length;
      const double weight = mirrored ? 2 * scale : scale;
      for (int64_t part = 0; part < parts_in(); ++part) {
        for (int64_t bin = 0; bin < bins(); ++bin) {
          const double cosine = weight * turn.cosines[row * bin % length];
          const double sine = weight * (inverse ? 1 : -1) * turn.sines[row * bin % length];
          waves.push_back(part == 0 ? cosine : -sine);
          if (parts_out() == 2) waves.push_back(part == 0 ? sine : cosine);
        }
      }
    }
    return MakeTensor(dtype, {rows(), parts_in(), columns()}, waves);
  }
};

}  // namespace

// signal [.., length, .., parts], dft_length?, axis = -2. The axis and the parts are flattened into
// rows of a product.
absl::Status DftInSteps(NodeDraft& draft, Graph& graph) {
  Steps steps(draft, graph);
  const ValueId input = steps.input(0), axis_input = steps.input(2);
  RETURN_IF_ERROR(steps.Require({0}));
  const std::optional<int64_t> length = steps.KnownInt(steps.input(1));
  const std::optional<int64_t> axis =
      axis_input == kNone ? std::optional<int64_t>(-2) : steps.KnownInt(axis_input);
  if (!length.has_value() || *length < 1 || !axis.has_value() || *axis == -1) {
    return absl::OkStatus();
  }
  if (*axis < -kMostDims || *axis >= kMostDims)
    return absl::OkStatus();  // the op's rule refuses it
  const Transform transform = {*length, draft.attributes.Int("inverse", 0) != 0,
                               draft.attributes.Int("onesided", 0) != 0};
  if (!transform.Fits()) return absl::OkStatus();

  // The rule of the op refuses a signal or an axis that do not fit, whose rank is not known here;
  // only its shape remains.
  const ValueId shape =
      steps.Add(ShapeOp::kName, {steps.Add("DFT", draft.inputs, draft.attributes)});

  // The signal is cut at the length; samples missing before it are zero, as are their products.
  const ValueId signal = steps.Add(
      SliceOp::kName,
      {input, steps.Int64s({0}), steps.Int64s({transform.rows()}), steps.Int64s({*axis})});
  const ValueId before = steps.Dims(signal, 0, *axis);
  const ValueId size = steps.Dims(signal, *axis, *axis + 1);
  const ValueId after = steps.Dims(signal, *axis + 1, -1);
  const ValueId parts = steps.Dims(signal, -1, std::nullopt);
  ValueId waves = steps.Constant("waves", transform.Waves(WaveType(graph, input)));
  waves = steps.Add(SliceOp::kName, {waves, steps.Int64s({0, 0}), steps.Concat({size, parts}),
                                     steps.Int64s({0, 1})});
  waves = steps.Add(ReshapeOp::kName, {waves, steps.Int64s({-1, transform.columns()})});
  waves = steps.Add(CastLikeOp::kName, {waves, input});

  const Attributes zeros = {{"allowzero", int64_t{1}}};  // a 0 in a shape means zero
  const ValueId width = steps.Product(steps.Concat({size, parts}));
  const ValueId bins = steps.Int64s({transform.bins()});
  const ValueId parts_out = steps.Int64s({transform.parts_out()});
  if (*axis == -2) {
    const ValueId rows =
        steps.Add(ReshapeOp::kName, {signal, steps.Concat({before, width})}, zeros);
    return steps.Become(ReshapeOp::kName, {steps.Add(MatMulOp::kName, {rows, waves}), shape},
                        zeros);
  }
  // Dims after the axis become one, and those before it where their number is not known.
  const int64_t rank = *axis >= 0 ? *axis : 1;
  const ValueId lead = *axis >= 0 ? before : steps.Product(before);
  const ValueId tail = steps.Product(after);
  std::vector<int64_t> swapped;
  for (int64_t i = 0; i < rank; ++i) swapped.push_back(i);
  swapped.insert(swapped.end(), {rank + 1, rank, rank + 2});
  ValueId rows =
      steps.Add(ReshapeOp::kName, {signal, steps.Concat({lead, size, tail, parts})}, zeros);
  rows = steps.Add(TransposeOp::kName, {rows}, {{"perm", swapped}});
  rows = steps.Add(ReshapeOp::kName, {rows, steps.Concat({lead, tail, width})}, zeros);
  ValueId results = steps.Add(MatMulOp::kName, {rows, waves});
  results =
      steps.Add(ReshapeOp::kName, {results, steps.Concat({lead, tail, bins, parts_out})}, zeros);
  results = steps.Add(TransposeOp::kName, {results}, {{"perm", swapped}});
  return steps.Become(ReshapeOp::kName, {results, shape}, zeros);
}

namespace {

// `window` as one of `size`: zeros are after a shorter one, the rest of a longer one is left out.
ValueId WindowOf(Steps& steps, const Graph& graph, ValueId window, int64_t size) {
  if (graph.value(window).shape == Shape{size}) return window;
  const ValueId zeros = steps.Constant(
      "rest", Tensor::FromVector(DType::kFloat32, {size}, std::vector<float>(size, 0)));
  const ValueId both = steps.Concat({window, steps.Add(CastLikeOp::kName, {zeros, window})});
  return steps.Add(SliceOp::kName,
                   {both, steps.Int64s({0}), steps.Int64s({size}), steps.Int64s({0})});
}

}  // namespace

// signal [batch, length], [batch, length, 1] or, if complex, [batch, length, 2]; frame_step,
// window?, frame_length?: a convolution whose kernels are the waves of all frequencies under the
// window. The result is [batch, frames, bins, 2].
absl::Status StftInSteps(NodeDraft& draft, Graph& graph) {
  Steps steps(draft, graph);
  const ValueId signal = steps.input(0), window = steps.input(2);
  const ValueId length = steps.input(3);
  RETURN_IF_ERROR(steps.Require({0, 1}));
  const std::optional<int64_t> step = steps.KnownInt(steps.input(1));
  std::optional<int64_t> frame = steps.KnownInt(length);
  if (length == kNone && window != kNone && graph.value(window).shape.has_value() &&
      graph.value(window).shape->size() == 1) {
    frame = graph.value(window).shape->front();
  }
  // The op itself takes steps that a request decides, and lengths with too many waves.
  if (!step.has_value() || !frame.has_value()) return absl::OkStatus();
  if (*step < 1 || *frame < 1) {
    return absl::InvalidArgumentError(absl::StrCat("frames of ", *frame, " in steps of ", *step));
  }
  const bool onesided = draft.attributes.Int("onesided", 1) != 0;
  const int64_t bins = onesided ? *frame / 2 + 1 : *frame;
  if (*frame > kMostElements / 2 / bins) return absl::OkStatus();
  // The importer makes parameters of large constants: the waves are prepared once.
  ValueId waves = steps.Constant("waves", FrameWaves(WaveType(graph, signal), bins, *frame));
  waves = steps.Add(CastLikeOp::kName, {waves, signal});
  if (window != kNone)
    waves = steps.Add(MulOp::kName, {waves, WindowOf(steps, graph, window, *frame)});
  const ValueId batch = steps.Dims(signal, 0, 1), samples = steps.Dims(signal, 1, 2);
  ValueId rows;
  if (onesided) {  // real signals may have a dim of 1 after the samples
    rows = steps.Add(ReshapeOp::kName, {signal, steps.Concat({batch, steps.Int64s({1}), samples})},
                     {{"allowzero", int64_t{1}}});
  } else {
    const ValueId parts = steps.Product(steps.Dims(signal, 2, std::nullopt));
    rows = steps.Add(ReshapeOp::kName, {signal, steps.Concat({batch, samples, parts})},
                     {{"allowzero", int64_t{1}}});
    rows = steps.Add(TransposeOp::kName, {rows}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    // The waves of imaginary parts are the waves of real ones, a quarter turn ahead.
    const auto half = [&](int64_t start, int64_t end) {
      return steps.Add(SliceOp::kName,
                       {waves, steps.Int64s({start}), steps.Int64s({end}), steps.Int64s({0})});
    };
    const ValueId ahead =
        steps.Concat({steps.Add(NegOp::kName, {half(bins, 2 * bins)}), half(0, bins)});
    const ValueId both = steps.Add(ConcatOp::kName, {waves, ahead}, {{"axis", int64_t{1}}});
    waves = steps.Add(SliceOp::kName, {both, steps.Int64s({0}), parts, steps.Int64s({1})});
  }
  const ValueId sums =
      steps.Add(ConvOp::kName, {rows, waves}, {{"strides", std::vector<int64_t>{*step}}});
  // Nothing is left to be found by the reshape: of an empty batch it could not be.
  const ValueId frames = steps.Dims(sums, 2, 3);
  const ValueId parts =
      steps.Add(ReshapeOp::kName, {sums, steps.Concat({batch, steps.Int64s({2, bins}), frames})},
                {{"allowzero", int64_t{1}}});
  return steps.Become(TransposeOp::kName, {parts}, {{"perm", std::vector<int64_t>{0, 3, 2, 1}}});
}

}  // namespace reprise

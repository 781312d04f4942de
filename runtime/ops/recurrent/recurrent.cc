#include "runtime/ops/recurrent/recurrent.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/recurrent/recurrent_activations.h"

namespace reprise::ops {
namespace {

enum Operand : size_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

constexpr Activation kSigmoid = {ActivationKind::kSigmoid};
constexpr Activation kTanh = {ActivationKind::kTanh};

// A layer's form, read from its attributes and from the shapes of x and R.
template <typename Number>
struct Layer {
  int64_t gates, directions;
  Number sequence, batch, size, hidden;
  bool batch_first, reverse;
  float clip;  // 0: none
  std::vector<Activation> activations;
};

template <typename Number>
absl::StatusOr<Layer<Number>> LayerOf(const Node& node, int64_t gates, absl::Span<const Number> x,
                                      absl::Span<const Number> r,
                                      const std::vector<Activation>& defaults) {
  Layer<Number> layer = {.gates = gates};
  const std::string direction = node.attributes.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return absl::InvalidArgumentError(absl::StrCat("there is no direction '", direction, "'"));
  }
  layer.reverse = direction == "reverse";
  layer.directions = direction == "bidirectional" ? 2 : 1;
  layer.batch_first = node.attributes.Int("layout", 0) != 0;
  layer.clip = node.attributes.Float("clip", 0);
  layer.sequence = x[layer.batch_first ? 1 : 0];
  layer.batch = x[layer.batch_first ? 0 : 1];
  layer.size = x[2];
  layer.hidden = r[2];
  if (const int64_t* hidden = node.attributes.Get<int64_t>("hidden_size");
      hidden != nullptr && layer.hidden != *hidden) {
    return absl::InvalidArgumentError(
        absl::StrCat("hidden_size is ", *hidden, ", R has ", layer.hidden));
  }
  ASSIGN_OR_RETURN(layer.activations, ActivationsOf(node, layer.directions, defaults));
  return layer;
}

// Returns the shape of a state.
SizeList StateShape(const Layer<Size>& l) {
  return l.batch_first ? SizeList{l.batch, l.directions, l.hidden}
                       : SizeList{l.directions, l.batch, l.hidden};
}

absl::Status CheckShape(const InferContext& context, size_t input, const SizeList& wanted) {
  if (!context.has_input(input) || context.shape(input) == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input ", input, " is ",
                                                 ShapeToString(context.shape(input)),
                                                 " instead of ", ShapeToString(wanted)));
}

absl::Status LayerRule(InferContext& context, int64_t gates,
                       const std::vector<Activation>& defaults) {
  RETURN_IF_ERROR(CheckType(context, kX, kFloats));
  for (const size_t input : {kX, kW, kR}) RETURN_IF_ERROR(CheckRank(context, input, 3));
  ASSIGN_OR_RETURN(const Layer<Size> l, LayerOf<Size>(context.node(), gates, context.shape(kX),
                                                      context.shape(kR), defaults));
  const Size rows = gates * l.hidden;
  RETURN_IF_ERROR(CheckShape(context, kW, {l.directions, rows, l.size}));
  RETURN_IF_ERROR(CheckShape(context, kR, {l.directions, rows, l.hidden}));
  RETURN_IF_ERROR(CheckShape(context, kB, {l.directions, 2 * rows}));
  RETURN_IF_ERROR(CheckShape(context, kLengths, {l.batch}));
  RETURN_IF_ERROR(CheckShape(context, kInitialH, StateShape(l)));
  RETURN_IF_ERROR(CheckShape(context, kInitialC, StateShape(l)));
  RETURN_IF_ERROR(CheckShape(context, kPeepholes, {l.directions, 3 * l.hidden}));
  for (size_t input = kW; input < context.num_inputs(); ++input) {
    if (!context.has_input(input)) continue;
    if (input == kLengths) {
      RETURN_IF_ERROR(CheckType(context, input, kIndices));
    } else {
      RETURN_IF_ERROR(CheckSameType(context, kX, input));
    }
  }
  context.SetOutput(0, context.dtype(kX),
                    l.batch_first ? SizeList{l.batch, l.sequence, l.directions, l.hidden}
                                  : SizeList{l.sequence, l.directions, l.batch, l.hidden});
  for (size_t output : {1, 2}) context.SetOutput(output, context.dtype(kX), StateShape(l));
  return absl::OkStatus();
}

// Returns elements [begin, begin + count) of an operand; zeros when it is left out.
template <typename T>
std::vector<Compute<T>> Part(const KernelContext& context, size_t i, int64_t begin, int64_t count) {
  std::vector<Compute<T>> part(count);
  if (!HasInput(context, i)) return part;
  for (int64_t k = 0; k < count; ++k) part[k] = context.inputs[i].as<T>()[begin + k];
  return part;
}

// The weights of one direction of a layer. Matrices are transposed, one column an input element, so
// that products run along the units.
template <typename C>
struct Weights {
  std::vector<C> w, r;         // [size, gates * hidden], [hidden, gates * hidden]
  std::vector<C> input_bias;   // [gates * hidden]
  std::vector<C> hidden_bias;  // likewise
  std::vector<C> peepholes;    // [3 * hidden]
  const Activation* activations;
};

template <typename C>
std::vector<C> Turn(const std::vector<C>& matrix, int64_t rows, int64_t columns) {
  std::vector<C> turned(matrix.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) turned[j * rows + i] = matrix[i * columns + j];
  }
  return turned;
}

// Computes to[0, count) += sum over k of x[k] * matrix[k * stride + [0, count)].
template <typename C>
void AddProduct(const C* x, int64_t length, const C* matrix, int64_t stride, int64_t count, C* to) {
  WatchWork(length * count);
  for (int64_t k = 0; k < length; ++k) {
    for (int64_t j = 0; j < count; ++j) to[j] += x[k] * matrix[k * stride + j];
  }
}

// Computes one row's step: `gates` holds W x + input_bias and is used up; `h` and `c` are the
// states.
template <typename C>
using Cell = void (*)(const Layer<int64_t>&, const Weights<C>&, bool flag, C* gates, C* scratch,
                      C* h, C* c);

template <typename C>
C Clipped(const Layer<int64_t>& layer, C x) {
  const C clip = layer.clip;
  return clip > 0 ? std::clamp(x, -clip, clip) : x;
}

template <typename C>
void RnnStep(const Layer<int64_t>& l, const Weights<C>& w, bool, C* gates, C*, C* h, C*) {
  for (int64_t j = 0; j < l.hidden; ++j) gates[j] += w.hidden_bias[j];
  AddProduct(h, l.hidden, w.r.data(), l.hidden, l.hidden, gates);
  for (int64_t j = 0; j < l.hidden; ++j) h[j] = w.activations[0](Clipped(l, gates[j]));
}

// Gates: update, reset, hidden.
template <typename C>
void GruStep(const Layer<int64_t>& l, const Weights<C>& w, bool linear_before_reset, C* gates,
             C* scratch, C* h, C*) {
  const int64_t n = l.hidden, rows = 3 * n;
  C* update = gates;
  C* reset = gates + n;
  C* made = gates + 2 * n;
  for (int64_t j = 0; j < 2 * n; ++j) gates[j] += w.hidden_bias[j];
  AddProduct(h, n, w.r.data(), rows, 2 * n, gates);
  for (int64_t j = 0; j < 2 * n; ++j) gates[j] = w.activations[0](Clipped(l, gates[j]));
  if (linear_before_reset) {
    std::copy_n(w.hidden_bias.data() + 2 * n, n, scratch);
    AddProduct(h, n, w.r.data() + 2 * n, rows, n, scratch);
    for (int64_t j = 0; j < n; ++j) made[j] += reset[j] * scratch[j];
  } else {
    for (int64_t j = 0; j < n; ++j) scratch[j] = reset[j] * h[j];
    for (int64_t j = 0; j < n; ++j) made[j] += w.hidden_bias[2 * n + j];
    AddProduct(scratch, n, w.r.data() + 2 * n, rows, n, made);
  }
  for (int64_t j = 0; j < n; ++j) {
    h[j] = (1 - update[j]) * w.activations[1](Clipped(l, made[j])) + update[j] * h[j];
  }
}

// Gates: input, output, forget, cell. Peepholes: input, output, forget.
template <typename C>
void LstmStep(const Layer<int64_t>& l, const Weights<C>& w, bool input_forget, C* gates, C*, C* h,
              C* c) {
  const int64_t n = l.hidden, rows = 4 * n;
  for (int64_t j = 0; j < rows; ++j) gates[j] += w.hidden_bias[j];
  AddProduct(h, n, w.r.data(), rows, rows, gates);
  const C* peephole = w.peepholes.data();
  const Activation &f = w.activations[0], &g = w.activations[1], &out = w.activations[2];
  for (int64_t j = 0; j < n; ++j) {
    const C input = f(Clipped(l, gates[j] + peephole[j] * c[j]));
    const C forget =
        input_forget ? 1 - input : f(Clipped(l, gates[2 * n + j] + peephole[2 * n + j] * c[j]));
    c[j] = forget * c[j] + input * g(Clipped(l, gates[3 * n + j]));
    h[j] = f(Clipped(l, gates[n + j] + peephole[n + j] * c[j])) * out(c[j]);
  }
}

// Returns the lengths; one outside [0, sequence] is reported and read as 0.
std::vector<int64_t> LengthsOf(const KernelContext& context, const Layer<int64_t>& l) {
  if (!HasInput(context, kLengths)) return std::vector<int64_t>(l.batch, l.sequence);
  std::vector<int64_t> lengths = Int64sOf(context, kLengths);
  for (int64_t row = 0; row < l.batch; ++row) {
    if (lengths[row] >= 0 && lengths[row] <= l.sequence) continue;
    context.errors.Report(kLengths, row, lengths[row], 0, l.sequence);
    lengths[row] = 0;
  }
  return lengths;
}

template <typename T>
Weights<Compute<T>> WeightsOf(const KernelContext& context, const Layer<int64_t>& l,
                              int64_t direction) {
  const int64_t rows = l.gates * l.hidden;
  return {
      .w = Turn(Part<T>(context, kW, direction * rows * l.size, rows * l.size), rows, l.size),
      .r = Turn(Part<T>(context, kR, direction * rows * l.hidden, rows * l.hidden), rows, l.hidden),
      .input_bias = Part<T>(context, kB, direction * 2 * rows, rows),
      .hidden_bias = Part<T>(context, kB, direction * 2 * rows + rows, rows),
      .peepholes = Part<T>(context, kPeepholes, direction * 3 * l.hidden, 3 * l.hidden),
      .activations = l.activations.data() +
                     direction * static_cast<int64_t>(l.activations.size()) / l.directions,
  };
}

template <typename T>
void Store(const KernelContext& context, size_t output, int64_t begin,
           const std::vector<Compute<T>>& values) {
  if (!HasOutput(context, output)) return;
  T* to = context.outputs[output].as<T>() + begin;
  for (size_t i = 0; i < values.size(); ++i) to[i] = static_cast<T>(values[i]);
}

// Computes row `row` of the batch in one direction, from its first step to its last.
template <typename T>
void RunRow(const KernelContext& context, const Layer<int64_t>& l,
            const Weights<Compute<T>>& weights, Cell<Compute<T>> cell, bool flag, int64_t direction,
            int64_t row, int64_t length) {
  using C = Compute<T>;
  const int64_t rows = l.gates * l.hidden;
  const int64_t state =
      (l.batch_first ? row * l.directions + direction : direction * l.batch + row) * l.hidden;
  std::vector<C> h = Part<T>(context, kInitialH, state, l.hidden);
  std::vector<C> c = Part<T>(context, kInitialC, state, l.hidden);
  if (length == 0) {
    std::fill(h.begin(), h.end(), C(0));
    std::fill(c.begin(), c.end(), C(0));
  }
  std::vector<C> gates(rows), scratch(l.hidden), zeros(l.hidden);
  const auto y_of = [&](int64_t t) {
    return (l.batch_first ? (row * l.sequence + t) * l.directions + direction
                          : (t * l.directions + direction) * l.batch + row) *
           l.hidden;
  };
  const bool backwards = l.reverse || direction == 1;
  for (int64_t step = 0; step < length; ++step) {
    const int64_t t = backwards ? length - 1 - step : step;
    const int64_t token = l.batch_first ? row * l.sequence + t : t * l.batch + row;
    const std::vector<C> x = Part<T>(context, kX, token * l.size, l.size);
    gates = weights.input_bias;
    AddProduct(x.data(), l.size, weights.w.data(), rows, rows, gates.data());
    cell(l, weights, flag, gates.data(), scratch.data(), h.data(), c.data());
    Store<T>(context, 0, y_of(t), h);
  }
  for (int64_t t = length; t < l.sequence; ++t) Store<T>(context, 0, y_of(t), zeros);
  Store<T>(context, 1, state, h);
  Store<T>(context, 2, state, c);
}

const std::vector<Activation>& LstmDefaults() {
  static const auto* const list = new std::vector<Activation>{kSigmoid, kTanh, kTanh};
  return *list;
}
const std::vector<Activation>& GruDefaults() {
  static const auto* const list = new std::vector<Activation>{kSigmoid, kTanh};
  return *list;
}
const std::vector<Activation>& RnnDefaults() {
  static const auto* const list = new std::vector<Activation>{kTanh};
  return *list;
}

absl::Status RunLayer(const KernelContext& context, int64_t gates,
                      const std::vector<Activation>& defaults, Cell<float> cell,
                      Cell<double> double_cell, absl::string_view flag_name) {
  ASSIGN_OR_RETURN(const Layer<int64_t> l,
                   LayerOf<int64_t>(context.node, gates, context.inputs[kX].shape,
                                    context.inputs[kR].shape, defaults));
  const bool flag = !flag_name.empty() && context.node.attributes.Int(flag_name, 0) != 0;
  const std::vector<int64_t> lengths = LengthsOf(context, l);
  return Dispatch(FloatList{}, context.inputs[kX].dtype, [&]<typename T>() {
    Cell<Compute<T>> typed;
    if constexpr (std::is_same_v<T, double>) {
      typed = double_cell;
    } else {
      typed = cell;
    }
    for (int64_t direction = 0; direction < l.directions; ++direction) {
      const auto weights = WeightsOf<T>(context, l, direction);
      for (int64_t row = 0; row < l.batch; ++row) {
        RunRow<T>(context, l, weights, typed, flag, direction, row, lengths[row]);
      }
    }
  });
}

}  // namespace

absl::Status LstmRule(InferContext& context) { return LayerRule(context, 4, LstmDefaults()); }
absl::Status GruRule(InferContext& context) { return LayerRule(context, 3, GruDefaults()); }
absl::Status RnnRule(InferContext& context) { return LayerRule(context, 1, RnnDefaults()); }

absl::Status LstmKernel(const KernelContext& context) {
  return RunLayer(context, 4, LstmDefaults(), LstmStep<float>, LstmStep<double>, "input_forget");
}
absl::Status GruKernel(const KernelContext& context) {
  return RunLayer(context, 3, GruDefaults(), GruStep<float>, GruStep<double>,
                  "linear_before_reset");
}
absl::Status RnnKernel(const KernelContext& context) {
  return RunLayer(context, 1, RnnDefaults(), RnnStep<float>, RnnStep<double>, "");
}

}  // namespace reprise::ops

// LSTM, GRU and RNN layers of the usual form: the inputs of all steps are one product, each step
// one more with the state, its functions on vectors. Of rows that end before the longest one what
// a step makes behind their end is taken back. What the ops offer beyond that (other functions,
// clipping, peepholes) runs by the reference kernel.
#include <algorithm>

#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/weight_memory.h"
#include "runtime/ops/recurrent_activations.h"

namespace reprise::cpu {
namespace {

constexpr int kNoOutput = -1;

enum Operand : int { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

struct RecurrentParams {
  enum class Cell : uint8_t { kRnn, kGru, kLstm };

  const GemmKernels* gemm = nullptr;
  UnaryFunction sigmoid = nullptr, tanh = nullptr;
  BinaryFunction add = nullptr, sub = nullptr, mul = nullptr;
  Cell cell = Cell::kRnn;
  int64_t gates = 1, directions = 1, sequence = 0, batch = 0, size = 0, hidden = 0;
  bool reverse = false, linear_before_reset = false;
  bool has_bias = false, has_h = false, has_c = false;
  DType lengths = DType::kUndefined;  // undefined: all rows are as long as the sequence
  int y = 0, last_h = 0, last_c = 0, workspace = 0;  // operands; y and the states may be unused

  int64_t width() const { return gates * hidden; }
  // Of one packed matrix that the state is multiplied with: all gates share a product, but those of
  // a GRU whose last one takes the state after the reset.
  int64_t state_columns() const {
    return cell == Cell::kGru && !linear_before_reset ? hidden : width();
  }
  bool has_lengths() const { return lengths != DType::kUndefined; }
  // Floats of a direction's workspace: gates of all steps, bias, state, cell, one spare row a row
  // and one as wide as the gates; with lengths also what state and cell were before a step.
  int64_t gate_floats() const { return sequence * batch * width(); }
  int64_t scratch_floats() const {
    const int64_t states = (has_lengths() ? 5 : 3) * batch * hidden;
    return static_cast<int64_t>(AlignUp(gate_floats() + (1 + batch) * width() + states, 16));
  }
};

using Cell = RecurrentParams::Cell;

int64_t GivenLength(const RecurrentParams& p, const LaunchArgs& launch, int64_t row) {
  const void* lengths = launch.operands[kLengths];
  return p.lengths == DType::kInt32 ? static_cast<const int32_t*>(lengths)[row]
                                    : static_cast<const int64_t*>(lengths)[row];
}

// One direction of a layer in one launch.
class Direction {
 public:
  Direction(const RecurrentParams& p, const LaunchArgs& launch, int64_t direction)
      : p_(p), launch_(launch), direction_(direction), state_(p.batch * p.hidden) {
    gates_ = static_cast<float*>(launch.operands[p.workspace]) + direction * p.scratch_floats();
    bias_ = gates_ + p.gate_floats();
    h_ = bias_ + p.width();
    c_ = h_ + state_;
    other_ = c_ + state_;
    spare_ = other_ + state_;
    kept_ = spare_ + p.batch * p.width();
  }

  void Run() {
    Start(p_.has_h, kInitialH, h_);
    Start(p_.has_c, kInitialC, c_);
    MultiplyInputs();
    const bool backwards = p_.reverse || direction_ == 1;
    const float* before = h_;
    auto* const y = static_cast<float*>(launch_.operands[p_.y]);
    if (p_.has_lengths()) return RunRows(backwards, y);
    for (int64_t step = 0; step < p_.sequence; ++step) {
      const int64_t t = backwards ? p_.sequence - 1 - step : step;
      float* const after = y == nullptr ? h_ : y + (t * p_.directions + direction_) * state_;
      Step(gates_ + t * p_.batch * p_.width(), before, after);
      before = after;
    }
    Store(p_.last_h, before);
    Store(p_.last_c, c_);
  }

 private:
  // Rows of lengths of their own: the states stay in h_ and c_.
  void RunRows(bool backwards, float* y) {
    int64_t longest = 0;
    for (int64_t row = 0; row < p_.batch; ++row) {
      const int64_t length = LengthOf(row);
      longest = std::max(longest, length);
      if (length > 0) continue;
      std::fill_n(h_ + row * p_.hidden, p_.hidden, 0.0f);
      std::fill_n(c_ + row * p_.hidden, p_.hidden, 0.0f);
    }
    for (int64_t step = 0; step < p_.sequence; ++step) {
      const int64_t t = backwards ? p_.sequence - 1 - step : step;
      float* const to = y == nullptr ? nullptr : y + (t * p_.directions + direction_) * state_;
      if (t >= longest) {
        if (to != nullptr) std::fill_n(to, state_, 0.0f);
        continue;
      }
      float* const kept_cell = kept_ + state_;
      std::copy_n(h_, state_, kept_);
      std::copy_n(c_, state_, kept_cell);
      Step(gates_ + t * p_.batch * p_.width(), h_, h_);
      if (to != nullptr) std::copy_n(h_, state_, to);
      for (int64_t row = 0; row < p_.batch; ++row) {
        if (t < LengthOf(row)) continue;
        const int64_t at = row * p_.hidden;
        std::copy_n(kept_ + at, p_.hidden, h_ + at);
        std::copy_n(kept_cell + at, p_.hidden, c_ + at);
        if (to != nullptr) std::fill_n(to + at, p_.hidden, 0.0f);
      }
    }
    Store(p_.last_h, h_);
    Store(p_.last_c, c_);
  }

  // One outside [0, sequence] is read as 0.
  int64_t LengthOf(int64_t row) const {
    const int64_t length = GivenLength(p_, launch_, row);
    return length >= 0 && length <= p_.sequence ? length : 0;
  }

  const float* input(int operand) const {
    return static_cast<const float*>(launch_.operands[operand]);
  }

  void Start(bool given, int operand, float* to) const {
    if (given) {
      std::copy_n(input(operand) + direction_ * state_, state_, to);
    } else {
      std::fill_n(to, state_, 0.0f);
    }
  }
  void Store(int operand, const float* from) const {
    if (operand == kNoOutput || launch_.operands[operand] == nullptr) return;
    std::copy_n(from, state_, static_cast<float*>(launch_.operands[operand]) + direction_ * state_);
  }

  // c[rows, columns] = a[rows, k] times the packed `weights`, plus `bias` or what is there. Rows of
  // c lie as those of the gates do.
  void Multiply(const float* a, int64_t k, int64_t rows, const float* weights, int64_t columns,
                float* c, const float* bias, bool added) const {
    p_.gemm->part({.a = a,
                   .lda = k,
                   .packed_b = weights,
                   .c = c,
                   .ldc = p_.width(),
                   .n = columns,
                   .k = k,
                   .bias = bias,
                   .residual = added ? c : nullptr,
                   .ld_residual = p_.width()},
                  {0, rows, 0, p_.gemm->Panels(columns)});
  }

  // The part of every gate that does not hang on the state.
  void MultiplyInputs() const {
    if (p_.has_bias) {
      const float* of_input = input(kB) + direction_ * 2 * p_.width();
      std::copy_n(of_input, p_.width(), bias_);
      // Such a GRU adds the state's bias to the state's part of the gates.
      if (!p_.linear_before_reset) p_.add(bias_, of_input + p_.width(), bias_, p_.width());
    }
    const int64_t floats = p_.gemm->PackedFloats(p_.size, p_.width());
    Multiply(input(kX), p_.size, p_.sequence * p_.batch, input(kW) + direction_ * floats,
             p_.width(), gates_, p_.has_bias ? bias_ : nullptr, false);
  }

  // Adds the state's part to `gates`, from gate `first` on as many as one packed matrix has.
  void MultiplyState(int64_t first, const float* h, float* gates) const {
    const int64_t columns = p_.state_columns();
    const int64_t matrix = (direction_ * p_.width() + first * p_.hidden) / columns;
    Multiply(h, p_.hidden, p_.batch, input(kR) + matrix * p_.gemm->PackedFloats(p_.hidden, columns),
             columns, gates + first * p_.hidden, nullptr, true);
  }

  void Step(float* gates, const float* before, float* after) const {
    switch (p_.cell) {
      case Cell::kRnn:
        MultiplyState(0, before, gates);
        p_.tanh(gates, after, state_);
        break;
      case Cell::kGru:
        GruStep(gates, before, after);
        break;
      case Cell::kLstm:
        LstmStep(gates, before, after);
        break;
    }
  }

  // Gates: update, reset, hidden.
  void GruStep(float* gates, const float* before, float* after) const {
    const int64_t n = p_.hidden, row = p_.width();
    if (p_.linear_before_reset) {
      const float* bias = p_.has_bias ? input(kB) + direction_ * 2 * row + row : nullptr;
      Multiply(before, n, p_.batch, input(kR) + direction_ * p_.gemm->PackedFloats(n, row), row,
               spare_, bias, false);
      for (int64_t b = 0; b < p_.batch; ++b) {
        float* const g = gates + b * row;
        float* const of_state = spare_ + b * row;
        p_.add(g, of_state, g, 2 * n);
        p_.sigmoid(g, g, 2 * n);
        p_.mul(g + n, of_state + 2 * n, of_state + 2 * n, n);
        p_.add(g + 2 * n, of_state + 2 * n, g + 2 * n, n);
      }
    } else {
      MultiplyState(0, before, gates);
      MultiplyState(1, before, gates);
      for (int64_t b = 0; b < p_.batch; ++b) {
        float* const g = gates + b * row;
        p_.sigmoid(g, g, 2 * n);
        p_.mul(g + n, before + b * n, spare_ + b * n, n);
      }
      MultiplyState(2, spare_, gates);
    }
    for (int64_t b = 0; b < p_.batch; ++b) {
      float* const g = gates + b * row;
      float* const made = g + 2 * n;
      float* const kept = other_ + b * n;
      p_.tanh(made, made, n);
      // (1 - update) made + update before
      p_.mul(g, before + b * n, kept, n);
      p_.mul(g, made, g, n);
      p_.sub(made, g, made, n);
      p_.add(made, kept, after + b * n, n);
    }
  }

  // Gates: input, output, forget, cell.
  void LstmStep(float* gates, const float* before, float* after) const {
    const int64_t n = p_.hidden;
    MultiplyState(0, before, gates);
    for (int64_t b = 0; b < p_.batch; ++b) {
      float* const g = gates + b * p_.width();
      float* const cell = c_ + b * n;
      p_.sigmoid(g, g, 3 * n);
      p_.tanh(g + 3 * n, g + 3 * n, n);
      p_.mul(g, g + 3 * n, g, n);
      p_.mul(g + 2 * n, cell, cell, n);
      p_.add(cell, g, cell, n);
      p_.tanh(cell, g, n);
      p_.mul(g + n, g, after + b * n, n);
    }
  }

  const RecurrentParams& p_;
  const LaunchArgs& launch_;
  const int64_t direction_;
  const int64_t state_;
  float *gates_, *bias_, *h_, *c_, *spare_, *other_, *kept_;
};

void ReportLengths(const RecurrentParams& p, const LaunchArgs& launch) {
  for (int64_t row = 0; row < p.batch; ++row) {
    const int64_t length = GivenLength(p, launch, row);
    if (length >= 0 && length <= p.sequence) continue;
    launch.frame->errors->Report(launch.launch, kLengths, row, length, 0, p.sequence);
  }
}

// Directions do not know of each other.
void RunRecurrent(const LaunchArgs& launch) {
  const auto& p = *static_cast<const RecurrentParams*>(launch.params);
  if (p.has_lengths() && launch.part == 0) ReportLengths(p, launch);
  const ItemRange range = RangeOfPart(p.directions, 1, launch.part, launch.parts);
  for (int64_t direction = range.begin; direction < range.end; ++direction) {
    Direction(p, launch, direction).Run();
  }
}

// The functions of the op's gates are those that it has when nothing is said.
bool HasUsualFunctions(const NodeView& node, int64_t directions, Cell cell) {
  using ops::ActivationKind;
  std::vector<ops::Activation> usual;
  if (cell != Cell::kRnn) usual.push_back({ActivationKind::kSigmoid});
  usual.push_back({ActivationKind::kTanh});
  if (cell == Cell::kLstm) usual.push_back({ActivationKind::kTanh});
  const auto named = ops::ActivationsOf(node.node(), directions, usual);
  if (!named.ok()) return false;
  for (size_t i = 0; i < named->size(); ++i) {
    if ((*named)[i].kind != usual[i % usual.size()].kind) return false;
  }
  return true;
}

// Of [directions, gates * hidden, k]: `columns` rows at a time are one matrix.
PrepareStep PackStep(const CpuTarget& target, const RecurrentParams& p, size_t input, int64_t k,
                     int64_t columns) {
  const int64_t floats =
      p.directions * (p.width() / columns) * target.gemm.PackedFloats(k, columns);
  return {.input = input,
          .op = kPackOp,
          .attributes = {{"panel", target.gemm.panel_columns},
                         {"columns", columns},
                         {"transposed", int64_t{1}}},
          .dtype = DType::kUInt8,
          .shape = {floats * static_cast<int64_t>(sizeof(float))}};
}

std::vector<Candidate> PlanLayer(const CpuTarget& target, const NodeView& node, Cell cell,
                                 int64_t gates) {
  const Attributes& attributes = node.attributes();
  if (!node.is_parameter(kW) || !node.is_parameter(kR) || node.has_input(kPeepholes) ||
      node.dtype(kX) != DType::kFloat32 || attributes.Int("layout", 0) != 0 ||
      attributes.Float("clip", 0) > 0 || attributes.Int("input_forget", 0) != 0) {
    return {};
  }
  RecurrentParams p;
  p.gemm = &target.gemm;
  p.sigmoid = target.elementwise.unary(Unary::kSigmoid);
  p.tanh = target.elementwise.unary(Unary::kTanh);
  p.add = target.elementwise.binary(Binary::kAdd, Run::kBoth);
  p.sub = target.elementwise.binary(Binary::kSub, Run::kBoth);
  p.mul = target.elementwise.binary(Binary::kMul, Run::kBoth);
  p.cell = cell;
  p.gates = gates;
  const Shape &x = node.shape(kX), &r = node.shape(kR);
  p.directions = r[0];
  p.sequence = x[0];
  p.batch = x[1];
  p.size = x[2];
  p.hidden = r[2];
  p.reverse = attributes.String("direction", "forward") == "reverse";
  p.linear_before_reset = cell == Cell::kGru && attributes.Int("linear_before_reset", 0) != 0;
  p.has_bias = node.has_input(kB);
  if (node.has_input(kLengths)) p.lengths = node.dtype(kLengths);
  p.has_h = node.has_input(kInitialH);
  p.has_c = node.has_input(kInitialC);
  if (p.sequence == 0 || p.batch == 0 || p.size == 0 || p.hidden == 0 ||
      !HasUsualFunctions(node, p.directions, cell)) {
    return {};
  }
  p.y = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  // An output that the node does not list is like one that nobody uses.
  p.last_h = node.num_outputs() > 1 ? p.y + 1 : kNoOutput;
  p.last_c = node.num_outputs() > 2 ? p.y + 2 : kNoOutput;
  const double flops = 2.0 * static_cast<double>(p.directions * p.sequence * p.batch) *
                       static_cast<double>(p.width() * (p.size + p.hidden));
  const size_t workspace = sizeof(float) * static_cast<size_t>(p.directions * p.scratch_floats());
  Candidate candidate = MakeCandidate(target, node, "recurrent", RunRecurrent, p, flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.prepare = {PackStep(target, p, kW, p.size, p.width()),
                              PackStep(target, p, kR, p.hidden, p.state_columns())};
  return {std::move(candidate)};
}

}  // namespace

std::vector<Candidate> PlanLstm(const CpuTarget& target, const NodeView& node) {
  return PlanLayer(target, node, Cell::kLstm, 4);
}

std::vector<Candidate> PlanGru(const CpuTarget& target, const NodeView& node) {
  return PlanLayer(target, node, Cell::kGru, 3);
}

std::vector<Candidate> PlanRnn(const CpuTarget& target, const NodeView& node) {
  return PlanLayer(target, node, Cell::kRnn, 1);
}

}  // namespace reprise::cpu

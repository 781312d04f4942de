#include "runtime/device/cpu/recurrent/recurrent.h"

#include <algorithm>

namespace reprise::cpu {
namespace {

using Cell = RecurrentLayer::Cell;

enum Phase : int { kStart, kInputs, kSteps };
// Elements of the state that a part has at least, whole lines.
constexpr int64_t kLineFloats = 16;

int64_t GivenLength(const RecurrentLayer& p, const LaunchArgs& launch, int64_t row) {
  const void* lengths = launch.operands[RecurrentLayer::kLengths];
  return p.lengths == DType::kInt32 ? static_cast<const int32_t*>(lengths)[row]
                                    : static_cast<const int64_t*>(lengths)[row];
}

// One direction of a layer in one launch.
class Direction {
 public:
  Direction(const RecurrentLayer& p, const LaunchArgs& launch, int64_t direction)
      : p_(p),
        launch_(launch),
        direction_(direction),
        state_(p.state_floats()),
        y_(static_cast<float*>(launch.operands[p.y])) {
    gates_ = static_cast<float*>(launch.operands[p.workspace]) + RecurrentLayer::kNoteFloats +
             direction * p.direction_floats();
    bias_ = gates_ + p.gate_floats();
    h_ = bias_ + p.width();
    c_ = h_ + 2 * state_;
    other_ = c_ + state_;
    spare_ = other_ + state_;
  }

  // Sets the values that steps begin with.
  void Start() const {
    StartState(p_.has_h, RecurrentLayer::kInitialH, h_);
    StartState(p_.has_c, RecurrentLayer::kInitialC, c_);
    if (!p_.has_bias) return;
    const float* const of_input = input(RecurrentLayer::kB) + direction_ * 2 * p_.width();
    std::copy_n(of_input, p_.width(), bias_);
    // Such a GRU adds the state's bias to the state's part of the gates.
    if (!p_.linear_before_reset) p_.add(bias_, of_input + p_.width(), bias_, p_.width());
  }

  // Computes a part of the products that do not depend on the state, for all gates of all steps.
  void MultiplyInputs() const {
    const int64_t rows = p_.sequence * p_.batch;
    const GemmPart part =
        p_.gemm->Partition(rows, p_.width(), /*int8=*/false, launch_.parts, launch_.part);
    Multiply(input(RecurrentLayer::kX), p_.size,
             input(RecurrentLayer::kW) + direction_ * p_.gemm->PackedFloats(p_.size, p_.width()),
             p_.width(), part, gates_, p_.has_bias ? bias_ : nullptr, /*added=*/false);
  }

  // Runs all steps for these rows of the batch alone.
  void AllSteps(const ItemRange& rows) const {
    for (int64_t step = 0; step < p_.sequence; ++step) {
      for (int move = 0; move < p_.moves(); ++move) {
        if (IsProduct(move)) {
          Multiply(step, move, rows, {0, Panels(move)});
        } else {
          for (int64_t row = rows.begin; row < rows.end; ++row) {
            Follow(step, move, row, {0, p_.hidden});
          }
        }
      }
    }
  }

  // Does a part of a move of a step.
  void Move(int64_t step, int move) const {
    if (IsProduct(move)) {
      const ItemRange panels = RangeOfPart(Panels(move), 1, launch_.part, launch_.parts);
      return Multiply(step, move, {0, p_.batch}, panels);
    }
    const ItemRange range = RangeOfPart(state_, kLineFloats, launch_.part, launch_.parts);
    for (int64_t at = range.begin, next; at < range.end; at = next) {
      const int64_t row = at / p_.hidden, first = row * p_.hidden;
      next = std::min(range.end, first + p_.hidden);
      Follow(step, move, row, {at - first, next - first});
    }
  }

 private:
  static bool IsProduct(int move) { return move % 2 == 0; }

  int64_t TimeOf(int64_t step) const {
    return p_.reverse || direction_ == 1 ? p_.sequence - 1 - step : step;
  }
  float* GatesOf(int64_t step) const { return gates_ + TimeOf(step) * p_.batch * p_.width(); }
  float* ResultOf(int64_t step) const {
    return y_ + (TimeOf(step) * p_.directions + direction_) * state_;
  }
  // Returns whether results are the states before and after a step; else two buffers are, in turn.
  bool ResultsAreStates() const { return y_ != nullptr && !p_.has_lengths(); }
  const float* Before(int64_t step) const {
    return step > 0 && ResultsAreStates() ? ResultOf(step - 1) : h_ + step % 2 * state_;
  }
  float* After(int64_t step) const {
    return ResultsAreStates() ? ResultOf(step) : h_ + (step + 1) % 2 * state_;
  }

  // Returns the length; one outside [0, sequence] is read as 0.
  int64_t LengthOf(int64_t row) const {
    const int64_t length = GivenLength(p_, launch_, row);
    return length >= 0 && length <= p_.sequence ? length : 0;
  }
  bool HasEnded(int64_t step, int64_t row) const {
    return p_.has_lengths() && TimeOf(step) >= LengthOf(row);
  }
  // Returns whether every one of `rows` has ended before this step.
  bool AreOver(int64_t step, const ItemRange& rows) const {
    if (!p_.has_lengths()) return false;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      if (!HasEnded(step, row)) return false;
    }
    return true;
  }

  const float* input(int operand) const {
    return static_cast<const float*>(launch_.operands[operand]);
  }

  void StartState(bool given, int operand, float* to) const {
    if (given) {
      std::copy_n(input(operand) + direction_ * state_, state_, to);
    } else {
      std::fill_n(to, state_, 0.0f);
    }
    for (int64_t row = 0; p_.has_lengths() && row < p_.batch; ++row) {
      if (LengthOf(row) == 0) std::fill_n(to + row * p_.hidden, p_.hidden, 0.0f);
    }
  }
  // Elements `at` of a row of the state, which begins at `row_at`.
  void Store(int operand, const float* from, int64_t row_at, const ItemRange& at) const {
    if (operand == RecurrentLayer::kNoOutput || launch_.operands[operand] == nullptr) return;
    float* const to = static_cast<float*>(launch_.operands[operand]) + direction_ * state_;
    std::copy(from + row_at + at.begin, from + row_at + at.end, to + row_at + at.begin);
  }

  // Computes `part` of c = a[.., k] times the packed `weights`, plus `bias` or the old c. The rows
  // of c lie like the rows of the gates.
  void Multiply(const float* a, int64_t k, const float* weights, int64_t columns,
                const GemmPart& part, float* c, const float* bias, bool added) const {
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
                  part);
  }

  // Packed matrices that the first or a later product of a step goes over, and their panels.
  int64_t Matrices(int move) const { return p_.resets_first() && move == 0 ? 2 : 1; }
  int64_t Panels(int move) const { return Matrices(move) * p_.gemm->Panels(p_.state_columns()); }

  // Panels `panels` of the state's part of the gates, for these rows.
  void Multiply(int64_t step, int move, const ItemRange& rows, const ItemRange& panels) const {
    if (AreOver(step, rows)) return;
    const int64_t columns = p_.state_columns(), of_matrix = p_.gemm->Panels(columns);
    const float* const weights =
        input(RecurrentLayer::kR) +
        direction_ * p_.width() / columns * p_.gemm->PackedFloats(p_.hidden, columns);
    // The bias is added here where the reset needs it.
    const bool apart = p_.cell == Cell::kGru && p_.linear_before_reset;
    const float* const bias = !apart || !p_.has_bias
                                  ? nullptr
                                  : input(RecurrentLayer::kB) + (direction_ * 2 + 1) * p_.width();
    const float* const state = move == 0 ? Before(step) : spare_;
    float* const to = apart ? spare_ : GatesOf(step);
    for (int64_t at = panels.begin, next; at < panels.end; at = next) {
      const int64_t index = at / of_matrix, first = index * of_matrix;
      next = std::min(panels.end, first + of_matrix);
      const int64_t matrix = index + (move == 0 ? 0 : 2);
      Multiply(state, p_.hidden, weights + matrix * p_.gemm->PackedFloats(p_.hidden, columns),
               columns, {rows.begin, rows.end, at - first, next - first}, to + matrix * columns,
               bias, !apart);
    }
  }

  // Computes the steps after a product, for elements `at` of a row.
  void Follow(int64_t step, int move, int64_t row, const ItemRange& at) const {
    const int64_t row_at = row * p_.hidden;
    const float* const before = Before(step) + row_at + at.begin;
    float* const gates = GatesOf(step) + row * p_.width() + at.begin;
    const int64_t count = at.end - at.begin;
    const bool ended = HasEnded(step, row);
    if (move + 1 < p_.moves()) {
      if (!ended) ResetState(gates, before, spare_ + row_at + at.begin, count);
      return;
    }
    float* const after = After(step) + row_at + at.begin;
    if (ended) {
      std::copy_n(before, count, after);
    } else {
      switch (p_.cell) {
        case Cell::kRnn:
          p_.tanh(gates, after, count);
          break;
        case Cell::kGru:
          if (p_.linear_before_reset) AddState(gates, spare_ + row * p_.width() + at.begin, count);
          GruOf(gates, before, other_ + row_at + at.begin, after, count);
          break;
        case Cell::kLstm:
          LstmOf(gates, c_ + row_at + at.begin, after, count);
          break;
      }
    }
    if (p_.has_lengths() && y_ != nullptr) {
      float* const to = ResultOf(step) + row_at + at.begin;
      ended ? std::fill_n(to, count, 0.0f) : std::copy_n(after, count, to);
    }
    if (step + 1 < p_.sequence) return;
    Store(p_.last_h, After(step), row_at, at);
    Store(p_.last_c, c_, row_at, at);
  }

  // Applies `f` to the first `gates` gates at `g`, which lie side by side where `count` is all.
  void OfGates(UnaryFunction f, float* g, int64_t gates, int64_t count) const {
    if (count == p_.hidden) return f(g, g, gates * count);
    for (int64_t gate = 0; gate < gates; ++gate, g += p_.hidden) f(g, g, count);
  }

  // Gates of a GRU: update, reset, hidden.
  void ResetState(float* g, const float* before, float* reset, int64_t count) const {
    OfGates(p_.sigmoid, g, 2, count);
    p_.mul(g + p_.hidden, before, reset, count);
  }
  void AddState(float* g, float* of_state, int64_t count) const {
    const int64_t n = p_.hidden;
    p_.add(g, of_state, g, count);
    p_.add(g + n, of_state + n, g + n, count);
    OfGates(p_.sigmoid, g, 2, count);
    p_.mul(g + n, of_state + 2 * n, of_state + 2 * n, count);
    p_.add(g + 2 * n, of_state + 2 * n, g + 2 * n, count);
  }
  void GruOf(float* g, const float* before, float* kept, float* after, int64_t count) const {
    float* const made = g + 2 * p_.hidden;
    p_.tanh(made, made, count);
    // (1 - update) made + update before
    p_.mul(g, before, kept, count);
    p_.mul(g, made, g, count);
    p_.sub(made, g, made, count);
    p_.add(made, kept, after, count);
  }

  // Gates: input, output, forget, cell.
  void LstmOf(float* g, float* cell, float* after, int64_t count) const {
    const int64_t n = p_.hidden;
    OfGates(p_.sigmoid, g, 3, count);
    p_.tanh(g + 3 * n, g + 3 * n, count);
    p_.mul(g, g + 3 * n, g, count);
    p_.mul(g + 2 * n, cell, cell, count);
    p_.add(cell, g, cell, count);
    p_.tanh(cell, g, count);
    p_.mul(g + n, g, after, count);
  }

  const RecurrentLayer& p_;
  const LaunchArgs& launch_;
  const int64_t direction_;
  const int64_t state_;
  float* const y_;
  float *gates_, *bias_, *h_, *c_, *other_, *spare_;
};

void ReportLengths(const RecurrentLayer& p, const LaunchArgs& launch) {
  for (int64_t row = 0; row < p.batch; ++row) {
    const int64_t length = GivenLength(p, launch, row);
    if (length >= 0 && length <= p.sequence) continue;
    launch.frame->errors->Report(launch.launch, RecurrentLayer::kLengths, row, length, 0,
                                 p.sequence);
  }
}

void StartAll(const RecurrentLayer& p, const LaunchArgs& launch) {
  if (launch.part != 0) return;
  if (p.has_lengths()) ReportLengths(p, launch);
  for (int64_t direction = 0; direction < p.directions; ++direction) {
    Direction(p, launch, direction).Start();
  }
}

// Runs all steps of some rows of the batch, in each direction: as many parts as there are groups.
void RunGroups(const RecurrentLayer& p, const LaunchArgs& launch) {
  const int parts = static_cast<int>(std::min<int64_t>(launch.parts, p.directions * p.groups()));
  if (launch.part >= parts) return;
  const ItemRange range = RangeOfPart(p.directions * p.batch, 1, launch.part, parts);
  for (int64_t at = range.begin, next; at < range.end; at = next) {
    const int64_t direction = at / p.batch, first = direction * p.batch;
    next = std::min(range.end, first + p.batch);
    Direction(p, launch, direction).AllSteps({at - first, next - first});
  }
}

// Runs a move of a step, in all directions. Where each part can have groups of its own, it goes
// through all of their steps at once, in the first of these phases: no part waits for another then,
// and the weights of a direction stay in a core's cache where the weights of both may not. A note
// tells later phases that this is done.
void RunMove(const RecurrentLayer& p, const LaunchArgs& launch) {
  auto& note = *static_cast<int32_t*>(launch.operands[p.workspace]);
  if (launch.phase == kSteps) {
    const bool at_once =
        launch.parts <= p.directions * p.groups() && (launch.parts > 1 || p.directions > 1);
    if (launch.part == 0) note = at_once ? 1 : 0;
    if (at_once) return RunGroups(p, launch);
  } else if (note != 0) {
    return;
  }
  const int move = launch.phase - kSteps;
  for (int64_t direction = 0; direction < p.directions; ++direction) {
    Direction(p, launch, direction).Move(move / p.moves(), move % p.moves());
  }
}

}  // namespace

int RecurrentLayer::phases() const {
  if (!phased) return kSteps + 1;
  return kSteps + static_cast<int>(sequence) * moves();
}

void RunRecurrent(const LaunchArgs& launch) {
  const auto& p = *static_cast<const RecurrentLayer*>(launch.params);
  switch (launch.phase) {
    case kStart:
      return StartAll(p, launch);
    case kInputs:
      for (int64_t direction = 0; direction < p.directions; ++direction) {
        Direction(p, launch, direction).MultiplyInputs();
      }
      return;
    default:
      return p.phased ? RunMove(p, launch) : RunGroups(p, launch);
  }
}

}  // namespace reprise::cpu

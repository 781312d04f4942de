// Recurrent layers of the usual form: LSTM, GRU and RNN of float32, as the ONNX operators say.
//
// A launch goes in phases (launch.h): the states and biases that steps begin with; the inputs of
// all steps, one product; then the steps, each one more product with the state and the functions of
// its gates. Directions and rows of the batch are independent: where there are enough of them for
// all threads, or a step is little work, each part takes some and goes through all steps. Otherwise
// the moves of a step are phases of their own, which all parts share.
//
// The states of rows that end before the longest one are kept as they were.
//
// Threads: see launch.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/elementwise/elementwise.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

struct RecurrentLayer {
  enum class Cell : uint8_t { kRnn, kGru, kLstm };
  // Inputs among the operands, as the operators list them.
  enum Input : int { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };
  static constexpr int kNoOutput = -1;

  const GemmKernels* gemm = nullptr;
  UnaryFunction sigmoid = nullptr, tanh = nullptr;
  BinaryFunction add = nullptr, sub = nullptr, mul = nullptr;
  Cell cell = Cell::kRnn;
  int64_t gates = 1, directions = 1, sequence = 0, batch = 0, size = 0, hidden = 0;
  bool reverse = false, linear_before_reset = false;
  bool has_bias = false, has_h = false, has_c = false;
  DType lengths = DType::kUndefined;  // undefined: all rows are as long as the sequence
  bool phased = false;                // moves are phases; else all of them are one
  int y = 0, last_h = 0, last_c = 0, workspace = 0;  // operands; y and the states may be unused

  bool has_lengths() const { return lengths != DType::kUndefined; }
  int64_t width() const { return gates * hidden; }
  int64_t state_floats() const { return batch * hidden; }
  // Returns whether the hidden gate, with a product of its own, takes the state after its reset.
  bool resets_first() const { return cell == Cell::kGru && !linear_before_reset; }
  // Columns of one packed matrix that the state is multiplied with.
  int64_t state_columns() const { return resets_first() ? hidden : width(); }
  // Returns the moves of a step: each product, and the steps after it.
  int moves() const { return resets_first() ? 4 : 2; }
  // Returns the groups of rows of the batch. Each group goes through the steps by itself and
  // reads all weights in each step; where a core's cache cannot hold them, a group has more rows.
  int64_t groups() const {
    constexpr int64_t kCacheFloats = 256 << 10, kFewRows = 4, kManyRows = 16;
    return std::max<int64_t>(1, batch / (width() * hidden > kCacheFloats ? kManyRows : kFewRows));
  }
  int phases() const;

  // Floats of a direction's workspace: gates of all steps, bias, two states, cell, and a row as
  // wide as the gates and a spare one for each of the batch.
  int64_t gate_floats() const { return sequence * batch * width(); }
  int64_t direction_floats() const {
    return static_cast<int64_t>(
        AlignUp(gate_floats() + (1 + batch) * width() + 4 * state_floats(), 16));
  }
  // In front of these lies a line for the note of the first move to later ones.
  static constexpr int64_t kNoteFloats = 16;
  int64_t workspace_floats() const { return kNoteFloats + directions * direction_floats(); }
};

// `params` is a RecurrentLayer. A length outside [0, sequence] is reported and read as 0.
void RunRecurrent(const LaunchArgs& launch);

}  // namespace reprise::cpu

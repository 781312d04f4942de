// Recipe: the immutable result of compiling a specialised graph.
//
// Ordered launches, the layout of every operand space, the constants, and the list of parameter
// expressions. No weight and no address of data: it is replayed through a Frame, on any stream, by
// any model version whose graph is the same.
//
// Ownership: shared. Threads: immutable.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/aligned_buffer.h"
#include "runtime/device/launch.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/recipe/index_sources.h"
#include "runtime/recipe/key.h"

namespace reprise {

// Where an input or output of the graph lies in its operand space.
struct TensorSlot {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  size_t offset = 0;
  size_t bytes = 0;
};

// Describes an operand of a launch to people: its place alone does not identify it.
struct OperandNote {
  enum class Role : uint8_t { kInput, kOutput, kWorkspace };
  Role role = Role::kInput;
  DType dtype = DType::kUndefined;  // undefined for a workspace
  uint64_t bytes = 0;
};

// The work of a replay between two barriers: a phase of a launch.
struct RecipeStep {
  int launch = 0;
  int phase = 0;
};

struct CompileTimes {
  int64_t specialize_ns = 0;
  int64_t passes_ns = 0;
  int64_t plan_ns = 0;
  int64_t bind_ns = 0;
};

// Which path captured the recipe, and why: for people.
struct CaptureNote {
  std::string model;
  int64_t version = 0;
  std::string bucket;     // "b8_s128", "exact"
  std::string binding;    // its sizes, each under the user's name of the axis
  bool bucketed = false;  // some axis has a bucket, with any sizes of the others
  std::string reason;     // "first_request"
  int64_t total_ns = 0;
  std::string tuning;  // how its kernels were chosen by timing; empty: they were not
};

// Returns whether `launch` may take longer than some 10 us: a replay looks at the clock before it.
inline bool MayTakeLong(const Launch& launch) {
  constexpr double kMuchWork = 3e6;
  return launch.reference || launch.foreign || launch.work.flops + launch.work.bytes > kMuchWork;
}

struct Recipe {
  RecipeKey key;
  CaptureNote note;
  std::vector<TensorSlot> inputs;   // the graph's inputs that remain, by model input index
  std::vector<TensorSlot> outputs;  // indexed by model output
  std::vector<Launch> launches;
  std::vector<RecipeStep> phased_steps;  // all of them; empty where every launch has one phase
  bool has_long_launches = true;         // see MayTakeLong
  // By launch, by operand: the one of `inputs` from which an integer operand is computed, so that a
  // data error can name it.
  std::vector<std::vector<IndexSource>> index_sources;
  std::vector<std::vector<OperandNote>> operand_notes;  // indexed by launch, then operand
  std::vector<ParameterExprPtr> parameters;             // indexed by slot
  std::vector<bool> unaligned;  // indexed by slot: every reader takes it at any address
  AlignedBuffer constants;
  size_t input_bytes = 0;
  size_t output_bytes = 0;
  size_t arena_bytes = 0;
  double work = 0;       // sum over all launches: LaunchWork::in_flops
  int64_t rows = 0;      // rows that Frame::live_rows counts, all of them; 0: it does not count
  int64_t segments = 0;  // the same of Frame::live_segments
  // `timeable`: launches whose kernel can be chosen by timing. `untimed`: the ones among them that
  // have not been timed, or for which timing chose another kernel than the recipe has.
  int timeable = 0;
  int untimed = 0;
  CompileTimes times;

  // Returns its sizes under the user's names of the axes, where the capture gave them.
  std::string SizesText() const {
    return note.binding.empty() ? key.binding.ToString() : note.binding;
  }
  int num_steps() const {
    return static_cast<int>(phased_steps.empty() ? launches.size() : phased_steps.size());
  }
  RecipeStep StepAt(int i) const {
    return phased_steps.empty() ? RecipeStep{.launch = i} : phased_steps[static_cast<size_t>(i)];
  }
  // Makes the steps from the launches, when all are there.
  void SetSteps();

  // Returns where `operand` lies in its space, in bytes from the base; for a parameter, its slot.
  uint64_t OffsetOf(const Operand& operand) const {
    switch (operand.space) {
      case Space::kInput:
        return operand.offset + inputs[operand.slot].offset;
      case Space::kOutput:
        return operand.offset + outputs[operand.slot].offset;
      default:
        return operand.offset;
    }
  }
  // Returns the bytes that keeping this recipe costs.
  int64_t memory_bytes() const;
  // Returns the bytes of all that a stream must hold: inputs, outputs, arena.
  size_t frame_bytes() const { return input_bytes + output_bytes + arena_bytes; }
  // Returns text for people: a line a launch, with kernel, shapes, operands and bytes.
  std::string Dump() const;
};

}  // namespace reprise

// Launch: one step of a recipe, and the frame that it runs in.
//
// A recipe is compiled once and replayed on any stream: it knows places (operands), never
// addresses. A frame gives the base address of each operand space for one replay.
//
//   arena      base + offset; written and read by the launches of one replay
//   input      table[slot] + offset; read only. An input of floats may begin at any multiple of its
//              element's size, and the bytes around it are not read: it may be the client's bytes
//   output     table[slot] + offset; read by the scatter afterwards. One of floats may begin at
//              any multiple of its element's size too, and the bytes around it are not touched:
//              it may be the client's answer
//   constant   base + offset; the recipe's own constants, read only
//   parameter  table[offset]; one address for each parameter expression of the recipe, because
//              results of the prepare program are shared by content between recipes, each in a
//              buffer of its own
//
// Threads: a launch has one or more phases, which come one after another with a barrier between
// them, as between two launches: a later phase may read whatever an earlier phase wrote in any
// part. In each phase the kernel is called once for each part of [0, parts), in any order and at
// the same time from several threads. Any number of parts gives the same answer, also a different
// number in each phase, so the thread count is not part of a recipe's key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/ops/kit/op.h"

namespace reprise {

enum class Space : uint8_t { kNone, kArena, kParameter, kConstant, kInput, kOutput };
absl::string_view SpaceName(Space space);

// A place: kNone for an optional operand left out.
struct Operand {
  Space space = Space::kNone;
  uint64_t offset = 0;  // bytes; for kParameter the slot in the recipe's parameter list
  uint32_t slot = 0;    // position in the recipe's inputs or outputs, for kInput and kOutput

  friend bool operator==(const Operand&, const Operand&) = default;
};

// Collects data errors of one replay, without allocating. One thread per (launch, part) reports at
// a time; different threads may report at once. Nothing that a kernel meets in data may end more
// than the request that sent it: a kernel reports it here, in one of two ways.
class ReplayErrors {
 public:
  virtual ~ReplayErrors() = default;
  // Element `element` (flat index) of operand `operand` of launch `launch` is outside [low, high].
  // The kernel has used another value in its place, and its other results are right.
  virtual void Report(int launch, int operand, int64_t element, int64_t value, int64_t low,
                      int64_t high) = 0;
  // Notes that a reference kernel could not compute launch `launch`, for the reason in `status`.
  // Its results are zeros, and all results that depend on them are wrong for every request.
  virtual void Fail(int launch, const absl::Status& status) = 0;
};

class Collective;

struct Frame {
  std::byte* arena = nullptr;
  const std::byte* const* inputs = nullptr;  // indexed by slot
  std::byte* const* outputs = nullptr;       // indexed by slot
  const std::byte* constants = nullptr;
  const void* const* parameters = nullptr;
  ReplayErrors* errors = nullptr;  // never null in a replay
  // The number of the recipe's rows along the batch axis that carry requests; kernels that were
  // bound with `takes_live_rows` skip the others, whose results are not read. At most the recipe's
  // batch; 0: all.
  int64_t live_rows = 0;
  // The same for values that have a row for each segment of packed requests, when the recipe has
  // room for `segments` of them (never as many as for rows).
  int64_t segments = 0;
  int64_t live_segments = 0;
  // The other ranks that run the same replay; null: there are none.
  Collective* collective = nullptr;
};

struct LaunchArgs {
  void* const* operands;  // resolved addresses, inputs first, then outputs, then the workspace
  const void* params;     // the result of Bind, a kernel's own type
  const Frame* frame;
  int launch;  // index in the recipe, for error reports
  int part;    // this call's share of the work
  int parts;
  int phase = 0;
  // No other part of the launch is called: the part may use the whole workspace.
  bool lone_part = false;
};

// Allocates nothing, takes no lock, throws nothing.
using KernelFn = void (*)(const LaunchArgs&);

// The least work of a full launch, for the roofline.
struct LaunchWork {
  double flops = 0;  // multiplications and additions
  double exps = 0;   // exp, or a function built on one: tanh, sigmoid
  double erfs = 0;
  double bytes = 0;         // operands that are read or written
  double weight_bytes = 0;  // the share of weights, which rarely lie in a core's cache
  double branches = 0;      // steps that depend on the value read just before, as down a tree

  // Returns all of it in flops: other work counts as the flops for which a core has time meanwhile.
  double in_flops() const { return flops + 16 * (exps + erfs) + bytes + 64 * branches; }
};

struct Launch {
  std::string kernel;  // "gemm_avx512", "reference/Erf"
  std::string node;    // the node's name or op, for people
  std::string detail;  // shapes as text, "[16, 384] x [384, 1536] + bias, gelu"
  KernelFn run = nullptr;
  std::vector<Operand> operands;
  std::shared_ptr<const void> params;
  int phases = 1;
  // The row of the batch that this launch serves alone; a replay without that row leaves it out.
  int64_t row = 0;
  bool reference = false;  // the op's reference kernel, one thread, may allocate
  bool foreign = false;    // calls a library that may allocate or lock
  LaunchWork work;
};

// Runs all of `launch`, on this thread. `args` except for its phase.
inline void RunWhole(const Launch& launch, LaunchArgs args) {
  for (args.phase = 0; args.phase < launch.phases; ++args.phase) launch.run(args);
}

// The most operands a launch may have, workspace included.
inline constexpr size_t kMaxOperands = 64;

// Returns the address of `operand` in `frame`; nullptr for kNone.
inline void* Resolve(const Operand& operand, const Frame& frame) {
  switch (operand.space) {
    case Space::kArena:
      return frame.arena + operand.offset;
    case Space::kOutput:
      return frame.outputs[operand.slot] + operand.offset;
    case Space::kInput:
      return const_cast<std::byte*>(frame.inputs[operand.slot]) + operand.offset;
    case Space::kConstant:
      return const_cast<std::byte*>(frame.constants) + operand.offset;
    case Space::kParameter:
      return const_cast<void*>(frame.parameters[operand.offset]);
    case Space::kNone:
      return nullptr;
  }
  return nullptr;
}

}  // namespace reprise

// Obligations: rows of the op table held to what padding, batching and packing ask of them.
//
// A drawn model of one op is loaded as any model is. Where the engine pads its requests, or packs
// them, the form that it made is run once more with hostile padding: by the reference kernels, and
// by the kernels of a device, at the bucket that the engine chose. The live part of each row equals
// what the reference kernels answer for that row alone.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/silent_observer.h"
#include "tests/fuzz/obligations/row_draft.h"

namespace reprise::obligations {

// The result of one draw.
struct Findings {
  bool refused = false;  // the model, or all of its requests
  bool has_op = false;   // the op is in the form that ran
  bool padded = false, packed = false;
  int64_t answers = 0;   // that were compared
  std::string verdicts;  // "s: may be padded: ..." for each axis
  std::string wrong;     // empty: nothing is
  // Wrong where padding of inputs is infinite, and not where it is ordinary; empty: it is not.
  std::string loud;
};

class Obligations {
 public:
  // `isa`: of the fast kernels.
  explicit Obligations(Isa isa);
  ~Obligations();

  // `op`: whose row it is.
  Findings Check(const fuzz::TestCase& test, absl::string_view op);

  // Returns whether the test would see it if the rule of the op let everything pass: the drawn
  // model is padded as it is.
  bool SeesBlindPadding(const fuzz::TestCase& test);

 private:
  struct Asked;  // a request with the answer to it alone
  class Trial;   // a loaded model with its requests

  SteadyClock clock_;
  HelperPool cores_;
  CpuDevice device_;
  SilentObserver observer_;
  Engine engine_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace reprise::obligations

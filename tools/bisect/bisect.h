// Bisect: finds the pass, and the node and kernel, that make an answer wrong.
//
//   ASSIGN_OR_RETURN(const Culprit culprit, Bisect(subject, device, {.tolerance = 1e-3}));
//   if (culprit.agrees) ...
//
// Threads: one caller.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/engine/audit/difference.h"
#include "tools/bisect/trial.h"

namespace reprise::cli {

struct BisectOptions {
  double tolerance = 1e-3;  // the largest difference of right answers: see Difference
};

// A kernel of the node at fault, alone among reference kernels.
struct KernelVerdict {
  std::string kernel;
  double difference = 0;
  bool wrong = false;
};

struct Culprit {
  Difference difference;  // the answer's, with all passes and kernels
  bool agrees = false;    // it is within the tolerance, and nothing else is set
  // The pass without which the answer is right; empty: the answer is wrong without any.
  std::string pass;
  bool pass_is_wrong = false;     // also with reference kernels: it rewrites wrongly
  std::vector<std::string> made;  // labels of nodes that it made
  // The node whose kernel is at fault, and the kernel; empty where the pass is.
  std::string node, kernel;
  std::vector<KernelVerdict> kernels;  // all that the device has for it
  int trials = 0;
};

// Returns the least number k from 1 to `most` at which `is_wrong(k)` is true and at k - 1 is not,
// or one such number where there are several, after about log2(most) calls. `is_wrong` is known to
// be false at 0 and true at `most`.
absl::StatusOr<size_t> FirstWrong(size_t most,
                                  absl::FunctionRef<absl::StatusOr<bool>(size_t)> is_wrong);

// Compares the answer with all passes and the kernels of `device` with each node of the file as it
// is, by its reference kernel. Errors: those of Trial::Run.
absl::StatusOr<Culprit> Bisect(const BisectSubject& subject, const Device& device,
                               const BisectOptions& options);

}  // namespace reprise::cli

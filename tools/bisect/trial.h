// Trial: one answer of a model, computed with some of the passes and some of the kernels.
//
// Ownership: borrows the subject and the device. Threads: one caller.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/device/device.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/onnx/importer.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise::cli {

// A model and a request for it.
struct BisectSubject {
  Graph graph;                     // as imported
  std::vector<Tensor> parameters;  // the graph's
  std::vector<FileBytes> files;    // that parameters point into
  Binding binding;
  std::map<std::string, Tensor> inputs;  // keyed by name
};

// The nodes that get kernels of the device; others have their reference kernels.
struct KernelChoice {
  bool all = false;
  std::set<NodeId> nodes;
  std::string kernel;  // that these nodes get; empty: the usual one of each
};

// A node of the graph that kernels were chosen for, by id.
struct SeenNode {
  NodeId id = kNone;
  std::string label;                 // "MatMul '/layer/MatMul'"
  std::vector<std::string> kernels;  // that the device has, the usual one first
};

// The passes that a trial leaves out, and its kernels.
struct TrialOptions {
  std::vector<std::string> without;  // passes
  KernelChoice kernels;
};

struct TrialResult {
  std::vector<Tensor> outputs;
  std::vector<SeenNode> nodes;
  std::map<std::string, std::vector<std::string>> made;  // labels of nodes, keyed by their pass
};

class Trial {
 public:
  Trial(const BisectSubject& subject, const Device& device);

  // Errors: those of passes and compilation, FAILED_PRECONDITION where data decide a shape.
  absl::StatusOr<TrialResult> Run(const TrialOptions& options);

 private:
  const BisectSubject& subject_;
  const Device& device_;
  const SteadyClock clock_;
  ParameterStore parameters_;
};

}  // namespace reprise::cli

// Device: runs nodes of a specialised graph.
//
// The compiler asks for the options of a node, takes one, lets the device prepare the parameters
// it needs, and after planning memory binds the node to its places.
//
//   1. Each node:   options = device.Options(graph, node)      // [] -> the reference kernel
//                   choose one; replace parameters by its prepare steps
//   2. Plan memory; each node: device.Bind(graph, node, option) -> kernel and its params
//
// A graph handed to a device is specialised: every value has a dtype and a constant shape.
//
// Ownership: the device outlives every recipe it bound. Threads: all methods from any thread.
// Errors: Bind may refuse with INTERNAL (a bug) or RESOURCE_EXHAUSTED; Prepare as documented.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/launch.h"
#include "runtime/graph/node.h"
#include "runtime/graph/parameter_expr.h"

namespace reprise {

// Replaces parameter operand `input` of a node by `op`(parameter), an op of the device or of the op
// table; without `op` by `parts`, of which there is then one. The result joins the prepare program.
struct PrepareStep {
  size_t input = 0;
  // The operands of `op`, where these are parts of the operand's expression rather than all of it.
  std::vector<ParameterExprPtr> parts;
  std::string op;
  Attributes attributes;
  DType dtype = DType::kUInt8;  // dtype of the result; packed layouts are bytes
  Shape shape;                  // shape of the result; packed layouts are [bytes]
};

struct KernelOption {
  std::string kernel;  // unique among the options of a node
  std::vector<PrepareStep> prepare;
  size_t workspace_bytes = 0;  // scratch in the arena, whatever the number of parts
  int in_place = -1;           // input whose buffer output 0 may take over when it is dead; -1 none
  bool takes_live_rows = false;
  std::vector<size_t> unaligned_inputs;  // that may begin at any address
  double estimate_ns = 0;                // one thread, warm; options come cheapest first
  // The question that decides which of several options is the fastest on a machine: text with all
  // that the answer depends on. It is equal for all options of a node that are worth timing, and
  // for all nodes with the same answer; empty: the first option is taken.
  std::string question;
  // The order in which it adds: options of one node with the same one give the same bits, and so do
  // options of nodes that differ in their number of rows alone. Empty: its name.
  std::string order;

  const std::string& Order() const { return order.empty() ? kernel : order; }
};

struct BoundKernel {
  KernelFn run = nullptr;
  std::shared_ptr<const void> params;
  int phases = 1;  // see launch.h
  std::string detail;
  bool foreign = false;
  LaunchWork work;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual absl::string_view name() const = 0;  // "cpu", "reference"

  // Text that is equal exactly when recipes are interchangeable: CPU model, ISA cap, kernel
  // versions. Part of the key.
  virtual std::string fingerprint() const = 0;

  // Returns the same device for models whose rows keep their bits at any number of rows, timed or
  // not: a node's options have one order of sums, which does not depend on its number of rows. It
  // is part of this, and prepares parameters as this does.
  virtual const Device& one_order() const { return *this; }

  // Ways to run the node, cheapest estimate first; empty when only the reference kernel can. The
  // first option takes a parameter in a form that other nodes share; a form that only a later
  // option takes would be held in addition.
  virtual std::vector<KernelOption> Options(const Graph& graph, NodeId node) const = 0;

  // Returns the kernel of `option` for this node. `graph` still has the node's original
  // operands; the operands at run time are: inputs in order (prepared where the option says
  // so), outputs in order, then the workspace if the option needs one.
  virtual absl::StatusOr<BoundKernel> Bind(const Graph& graph, NodeId node,
                                           const KernelOption& option) const = 0;

  // Runs one prepare step: `op` of the device itself, or any op of the op table.
  virtual absl::StatusOr<Tensor> Prepare(const std::string& op, const Attributes& attributes,
                                         absl::Span<const std::optional<Tensor>> inputs) const = 0;
};

// Binds the reference kernel of a node as a launch kernel. The compiler uses it for a node without
// options, and the reference device for every node.
absl::StatusOr<BoundKernel> BindReference(const Graph& graph, NodeId node);

// Prepare with the op table alone; devices call it for ops that are not theirs.
absl::StatusOr<Tensor> PrepareWithReference(const std::string& op, const Attributes& attributes,
                                            absl::Span<const std::optional<Tensor>> inputs);

}  // namespace reprise

// An op is one OpRow: the single definition of its arity, shape rule, traits and meaning, and of
// how positions along an axis flow through it.
//
// Rows are listed in op_table.cc and nowhere else. The importer asks whether an op exists, the
// passes ask for traits and shapes, folding and the reference device run the reference kernel, the
// fast device compares itself with it. Ops of ONNX are named as in ONNX, ops of other domains
// "com.microsoft.Gelu", and ours "reprise.Attention" (internal: no model file may name them).
//
// Every row defines the newest form of its op up to opset 28: the importer rewrites older forms
// (attributes that became inputs, changed defaults) into it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/graph/node.h"
#include "runtime/shapes/size.h"

namespace reprise {

// The operands that a shape rule sees and the results that it sets.
//
// Rules are written once, over sizes: at a capture all of these are constants; when a model is read
// (passes/read), they may say where they come from, and a rule's question about them becomes a
// guard (shapes/size.h).
class InferContext {
 public:
  struct Input {
    DType dtype = DType::kUndefined;  // kUndefined: left out
    SizeList shape;
    const Tensor* constant = nullptr;  // set when the value is known
    // Set when the value is known by its sizes: integers, one an element.
    const std::vector<Size>* elements = nullptr;
  };
  InferContext(const Node& node, absl::Span<const Input> inputs);

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  size_t num_inputs() const { return inputs_.size(); }
  size_t num_outputs() const { return outputs_.size(); }
  bool has_input(size_t i) const {
    return i < inputs_.size() && inputs_[i].dtype != DType::kUndefined;
  }
  DType dtype(size_t i) const { return inputs_[i].dtype; }
  const SizeList& shape(size_t i) const { return inputs_[i].shape; }
  // Returns the shape as numbers, for rules of ops that capture alone makes, or that decide by code
  // of others: each size is pinned (Size::Pinned).
  const Shape& pinned_shape(size_t i) const;
  // Pins the shapes of all inputs and the sizes that their elements are: for rules whose error
  // holds at these sizes, and maybe at no others.
  void PinSizes() const;
  int64_t rank(size_t i) const { return static_cast<int64_t>(inputs_[i].shape.size()); }
  // Returns the value, or nullptr where it is not known. One that is known by its sizes is pinned.
  const Tensor* constant(size_t i) const;

  // Returns the integers of input `i`. FAILED_PRECONDITION, "depends on data", when they are not
  // known yet.
  absl::StatusOr<std::vector<Size>> RequireSizes(size_t i) const;
  // Returns the same, each pinned: axes, and other numbers that are no sizes.
  absl::StatusOr<std::vector<int64_t>> RequireInt64s(size_t i) const;

  void SetOutput(size_t i, DType dtype, SizeList shape);
  struct Output {
    DType dtype = DType::kUndefined;
    SizeList shape;
  };
  const std::vector<Output>& outputs() const { return outputs_; }

 private:
  const Node& node_;
  absl::Span<const Input> inputs_;
  std::vector<Output> outputs_;
  // By input, made when a rule asks.
  mutable std::vector<std::unique_ptr<const Shape>> pinned_shapes_;
  mutable std::vector<std::unique_ptr<const Tensor>> pinned_values_;
};

// Where a kernel reports data it cannot use, such as an index out of range. It then goes on with
// index 0, so that batch-mates are answered; the caller of the kernel decides how to treat the
// report.
class DataErrors {
 public:
  virtual ~DataErrors() = default;
  // Reports that element number `element` of input `input` holds `value`, outside [low, high].
  // Allocates nothing.
  virtual void Report(int input, int64_t element, int64_t value, int64_t low, int64_t high) = 0;
};

struct KernelContext {
  const Node& node;
  absl::Span<const TensorView> inputs;          // data == nullptr and kUndefined: left out
  absl::Span<const MutableTensorView> outputs;  // shapes as the shape rule gave them
  DataErrors& errors;
};

// Sets every output's dtype and shape. INVALID_ARGUMENT for shapes that the op does not take,
// UNIMPLEMENTED for a form, dtype or mix of dtypes that we lack, naming it.
using InferRule = absl::Status (*)(InferContext&);
// Plain loops that define the op. Inputs and outputs do not overlap.
using ReferenceKernel = absl::Status (*)(const KernelContext&);

// How the positions along an axis flow through the op. See axis_rule.h.
class AxisContext;
using AxisRule = void (*)(AxisContext&);

// Returns the dtype of result `result`, from the operands' dtypes, while shapes are not known;
// kUndefined where it cannot be told. `operands`: one entry an input, kUndefined where that is left
// out or not known. The shape rule gives the same dtype once shapes are known. See result_types.h.
using TypeRule = DType (*)(const Node& node, size_t result, absl::Span<const DType> operands);
inline DType TypeLikeFirst(const Node&, size_t, absl::Span<const DType> operands) {
  return operands.empty() ? DType::kUndefined : operands[0];
}

enum OpTrait : uint32_t {
  kElementwise = 1u << 0,    // output element i depends on (broadcast) input elements i alone
  kCommutative = 1u << 1,    // two inputs, order irrelevant
  kView = 1u << 2,           // output 0 is input 0's bytes under another shape
  kShapeOnly = 1u << 3,      // depends on its inputs' shapes, never on their elements
  kInternal = 1u << 4,       // ours: no model file may name it
  kDataDependent = 1u << 5,  // the output shape depends on elements, not only on value_inputs
  kNoFold = 1u << 6,         // never folded, even over constants (random numbers)
};

struct OpRow {
  absl::string_view name;
  int min_inputs;
  int max_inputs;  // -1: any number
  int min_outputs;
  int max_outputs;  // -1: any number
  uint32_t traits;
  uint32_t value_inputs;  // bit i: the values of input i decide shapes (Reshape: input 1)
  InferRule infer;
  ReferenceKernel reference;
  AxisRule axis;
  TypeRule types = TypeLikeFirst;

  bool Has(OpTrait trait) const { return (traits & trait) != 0; }
  bool IsValueInput(size_t i) const { return i < 32 && ((value_inputs >> i) & 1) != 0; }
};

// Returns the row, or nullptr. Threads: any.
const OpRow* FindOp(absl::string_view name);
absl::Span<const OpRow> AllOps();

// --- Helpers over rows, in op.cc. ---

// Runs the shape rule of `node` in `graph`, whose inputs have known shapes; sets dtype and shape
// of its results. Checks arity. Errors name the node, the op and the operands' types.
absl::Status InferNode(Graph& graph, NodeId node);

// Does the same for operands that are given, and maybe sizes with terms.
absl::StatusOr<std::vector<InferContext::Output>> InferOutputs(
    const Node& node, absl::Span<const InferContext::Input> inputs);

// Runs the reference kernel over known tensors and returns the outputs. A data error becomes
// INVALID_ARGUMENT. RESOURCE_EXHAUSTED, naming node, size and limit, before an output of more than
// `max_bytes` is allocated.
absl::StatusOr<std::vector<Tensor>> Evaluate(const Node& node,
                                             absl::Span<const std::optional<Tensor>> inputs,
                                             int64_t max_bytes);

}  // namespace reprise

// A reference kernel as a function of numbers: what an op makes of elements that sizes decide,
// where no normal form says it.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "runtime/graph/node.h"
#include "runtime/graph/tensor.h"
#include "runtime/shapes/term.h"

namespace reprise {

// How the elements of an operand are given: `count` of them, from the operands of the call.
struct CallOperand {
  DType dtype = DType::kUndefined;  // kUndefined: left out
  Shape shape;
};

// Element `element` of result `result` of `node`, as a function of the elements of its operands,
// one after another.
std::shared_ptr<const SizeFunction> KernelCall(const Node& node, std::vector<CallOperand> operands,
                                               size_t result, int64_t element, DType dtype);

// Returns a function that has no numbers: any element of result `result` follows from all that its
// operands hold.
std::shared_ptr<const SizeFunction> OpaqueCall(const Node& node, std::vector<CallOperand> operands,
                                               size_t result, DType dtype);

// A function that one of these has made.
struct CalledKernel {
  const Node* node = nullptr;  // nullptr: another function
  bool opaque = false;
  absl::Span<const CallOperand> operands;
  DType dtype = DType::kUndefined;  // the result's
};
CalledKernel KernelOf(const SizeFunction& function);

}  // namespace reprise

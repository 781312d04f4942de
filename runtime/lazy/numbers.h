// Numbers in a program's source, `x * 0.1`: inputs of the graph that replays, so that other numbers
// replay it too.
//
// Some stay constants of the graph, and other numbers there are another graph: those that decide
// shapes (an op's value inputs), those of a Capture, whose source is not run again, and those that
// a fusion reads: the scale of an attention, the halves of a GELU written out, an epsilon.
//
// Threads: functions are pure; call from any thread.
#pragma once

#include <vector>

#include "runtime/graph/tensor.h"
#include "runtime/lazy/trace.h"

namespace reprise::lazy {

// Returns the number as one element of `dtype`.
reprise::Tensor ScalarOf(double number, DType dtype);

// Returns for each of the numbers of the graph of `wanted`, in the order of TracedGraph::numbers,
// whether it stays a constant: without it the passes would join less. Decided for the numbers'
// values of now.
std::vector<bool> NumbersToHold(const std::vector<TracedValuePtr>& wanted, size_t numbers);

}  // namespace reprise::lazy

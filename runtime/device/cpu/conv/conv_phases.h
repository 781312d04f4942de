// A transposed convolution as convolutions: each makes every stride-th element of the result, its
// windows step by one over the operand, and its kernel is every stride-th tap, reversed. None of
// them multiplies zeros, and no sum is stored before it is finished.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/shape.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::cpu {

struct ConvPhase {
  std::vector<int64_t> first;    // where its first result lies, one entry a dim
  ops::Windows windows;          // windows over the operand; no element reaches them if kernel is 0
  std::vector<int64_t> offsets;  // where each of its taps lies in a kernel of the weight

  int64_t taps() const { return NumElements(windows.kernel); }
};

// There are as many phases as the product of the strides, whatever the sizes; a phase without
// results has a 0 in `windows.out`.
std::vector<ConvPhase> PhasesOf(const ops::TransposedWindows& transposed);

// Makes of `weight` [channels, maps / groups, kernel...] the weights of all phases, one after
// another: [maps, channels / groups, taps] each. They are no more floats than there were. Allocates
// nothing.
void SplitIntoPhases(const std::vector<ConvPhase>& phases, const Shape& weight, int64_t groups,
                     const float* from, float* to);

}  // namespace reprise::cpu

// The measured peak rates of this machine, which the roofline compares with.
//
// Threads: the caller's alone; the figures are of a core that has nothing else to do.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/device/roofline.h"

namespace reprise::cpu {

// 1e9 operations a second of fused multiply-adds in registers, each two operations: the best of
// several short runs.
double MeasureGflops(Isa isa);

// Bytes that lie as weights do, to be read as fast as one core can.
class WeightReader {
 public:
  WeightReader(Isa isa, size_t bytes);
  // Returns the bytes that Pass reads, at least as many as the constructor was given.
  size_t bytes() const { return bytes_; }
  // Reads all of the bytes once, in order.
  void Pass() const;

 private:
  const Isa isa_;
  const size_t bytes_;
  WeightMemory memory_;
  const std::shared_ptr<std::byte> block_;
};

// Measures 1e9 bytes a second that one core reads of a buffer of `bytes` bytes, repeatedly: the
// bandwidth of a cache where it fits into one.
double MeasureReadBandwidth(Isa isa, size_t bytes);

// Measures for a recipe with `weight_bytes` of weights, and at most `other_bytes` of other operands
// in one launch. It takes about 0.2 s.
Roofline MeasureRoofline(Isa isa, size_t weight_bytes, size_t other_bytes);

}  // namespace reprise::cpu

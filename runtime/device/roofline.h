// Roofline: the time that a launch would take on this machine if nothing but its arithmetic, or
// nothing but moving its bytes, took time. The longer of the two is its floor.
#pragma once

#include <algorithm>

#include "runtime/device/launch.h"

namespace reprise {

// The peak rates of one core, in 1e9 a second.
struct Roofline {
  double gflops = 0;         // multiplications and additions
  double gexps = 0;          // exp of a float, as the kernels compute it
  double gerfs = 0;          // erf, measured the same way
  double weight_gbytes = 0;  // reading as many bytes as the recipe has weights, again and again
  double other_gbytes = 0;   // reading as many bytes as its largest launch moves besides
};

// Nanoseconds.
struct LaunchFloor {
  double compute_ns = 0;
  double memory_ns = 0;
  double ns() const { return std::max(compute_ns, memory_ns); }
};

LaunchFloor FloorOf(const LaunchWork& work, const Roofline& roofline);

}  // namespace reprise

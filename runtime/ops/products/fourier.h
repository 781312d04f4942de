// The discrete Fourier transform of one axis, of any length.
//
// Inputs: signal [.., size, .., parts] with 1 part (real) or 2 (real, imaginary), dft_length? (the
// size of the axis), axis? (-2). A signal is cut or filled with zeros to dft_length. Attributes
// inverse = 0, onesided = 0: forward, the lower half of the frequencies of a real signal,
// [.., dft_length / 2 + 1, .., 2]; inverse, the real signal of such a half, [.., dft_length, .., 1]
// (2 * (size - 1) by default). An inverse transform is divided by its length.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule DftRule;
Kernel DftKernel;

}  // namespace reprise::ops

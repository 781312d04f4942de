// STFT: the discrete Fourier transforms of frames of a signal.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// STFT(signal [batch, samples], [batch, samples, 1] or, of complex numbers, [batch, samples, 2],
// frame_step, window? [size], frame_length?) is [batch, frames, bins, 2]: as many frames as fit
// into the samples, the lower half of the frequencies with onesided = 1 (the default; of real
// signals). A frame has frame_length samples, by default as many as the window, else all of the
// signal. A shorter window lies at the beginning of a frame, whose rest is zeros; of a longer one
// the rest is left out.
//
// The importer makes a convolution of it where step and length are constants (rewrites_fourier).
Rule StftRule;
Kernel StftKernel;

}  // namespace reprise::ops

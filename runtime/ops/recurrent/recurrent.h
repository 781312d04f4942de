// Recurrent layers: LSTM, GRU and RNN.
//
// With D = 1 direction ("forward", "reverse") or 2 ("bidirectional"), G gates of `hidden` units and
// layout 0: x [sequence, batch, size], W [D, G * hidden, size], R [D, G * hidden, hidden],
// B? [D, 2 * G * hidden], sequence_lens? [batch], initial_h? [D, batch, hidden], for an LSTM also
// initial_c? and the peepholes P? [D, 3 * hidden]. Outputs Y [sequence, D, batch, hidden],
// Y_h [D, batch, hidden], Y_c. Layout 1 has the batch first, in x, Y and the states.
//
// Past the end of a row (sequence_lens) Y is 0; the states are taken at the end, where a reversed
// direction starts. A row of length 0 has zeros for states, as in onnxruntime.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule LstmRule, GruRule, RnnRule;
Kernel LstmKernel, GruKernel, RnnKernel;

}  // namespace reprise::ops

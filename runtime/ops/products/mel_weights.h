// MelWeightMatrix: triangular filters that are evenly spaced on the mel scale.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// MelWeightMatrix(num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz), all
// scalars, is [dft_length / 2 + 1, num_mel_bins] of dtype `output_datatype` (float32): how much of
// each frequency of a spectrum goes to each filter. A filter beyond the spectrum's end is cut
// there. mel(f) = 2595 log10(1 + f / 700).
Rule MelWeightMatrixRule;
Kernel MelWeightMatrixKernel;
// Returns the dtype that attribute `output_datatype` names.
DType MelWeightMatrixTypes(const Node& node, size_t result, absl::Span<const DType> operands);

}  // namespace reprise::ops

// MaxUnpool: the largest elements of windows, put back where MaxPool found them.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// MaxUnpool(x [batch, channels, dims...], places like x (int64), output_shape? [rank]): zeros but
// for the elements of x. Places are element numbers of the whole result, batch and channels
// included, as MaxPool counts them. The dims of that result follow from kernel_shape, strides and
// pads; a larger `output_shape` has zeros after it. onnxruntime counts places in the larger shape.
Rule MaxUnpoolRule;
Kernel MaxUnpoolKernel;

}  // namespace reprise::ops

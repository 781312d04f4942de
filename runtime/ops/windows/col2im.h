// Col2Im: columns of blocks, put back as images.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Col2Im(x [batch, channels * elements of a block, blocks], image_shape [dims], block_shape [dims])
// is [batch, channels, image dims...]: the sum of all blocks, each at its window by attributes
// `dilations`, `pads` and `strides`. Elements on the padding are left out.
Rule Col2ImRule;
Kernel Col2ImKernel;

}  // namespace reprise::ops
